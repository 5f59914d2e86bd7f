//! Stacks as lines of text, for flame graphs and other tools
//! (<https://github.com/brendangregg/FlameGraph>: names with `;` between them, a blank, the number of samples).

use std::collections::BTreeMap;

use waggle_model::visible::on_a_line;

use crate::profile::{Chain, Function, Owner, Profile};

/// Longest digest text, in letters.
const TITLE_MAX: usize = 100;

/// Every stack on a line, in the order of their letters. For whom a thread worked stands where its outermost function
/// would; where there are several servers, each stands before that.
pub fn folded(profile: &Profile) -> String {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    let has_several = works_for_several(profile);
    for stack in &profile.stacks {
        let Some(owner) = profile.owners.get(stack.owner) else { continue };
        let mut names = Vec::new();
        if has_several {
            names.push(format!("server {}", owner.pid));
        }
        names.push(title(owner));
        match stack.chain {
            Chain::Whole => {}
            Chain::Broken => names.push("(callers lost)".to_owned()),
            Chain::Cut => names.push("(callers cut)".to_owned()),
        }
        let functions = stack.functions.iter().filter_map(|at| profile.functions.get(*at));
        names.extend(functions.map(name));
        *lines.entry(names.join(";")).or_default() += stack.count;
    }
    lines.iter().map(|(names, count)| format!("{names} {count}\n")).collect()
}

/// Whether the stacks are of several servers.
pub(crate) fn works_for_several(profile: &Profile) -> bool {
    let mut pids =
        profile.stacks.iter().filter_map(|stack| Some(profile.owners.get(stack.owner)?.pid));
    let first = pids.next();
    pids.any(|pid| Some(pid) != first)
}

/// Whom a thread worked for, as short as fits in a picture.
pub(crate) fn title(owner: &Owner) -> String {
    shortened(&clean(owner.title()))
}

/// A text as short as fits in a picture.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(TITLE_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A function; those of the kernel with the mark that tools know.
pub(crate) fn name(function: &Function) -> String {
    let mark = if function.is_kernel { "_[k]" } else { "" };
    clean(&function.name) + mark
}

/// A name without what has a meaning in such a line.
fn clean(name: &str) -> String {
    on_a_line(name).replace(';', ":")
}
