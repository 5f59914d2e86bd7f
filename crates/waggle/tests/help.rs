//! What `--help` says is what docs/reference/cli.md and those of its groups say.
#![cfg(test)]

use std::fs;
use std::path::Path;
use std::process::Command;

/// The commands of each page of the reference.
const PAGES: [(&str, &[&str]); 6] = [
    ("cli.md", &["", "watch", "verify", "doctor", "servers", "locks", "profile"]),
    (
        "cli-pfs.md",
        &[
            "pfs",
            "pfs status",
            "pfs cost",
            "pfs profiles",
            "pfs plan",
            "pfs apply",
            "pfs set",
            "pfs timer",
            "pfs rollback",
            "pfs history",
            "pfs persist",
        ],
    ),
    (
        "cli-innodb.md",
        &[
            "innodb",
            "innodb status",
            "innodb enable",
            "innodb disable",
            "innodb reset",
            "innodb watch",
        ],
    ),
    ("cli-ddl.md", &["ddl", "ddl tail", "ddl log"]),
    (
        "cli-prove.md",
        &["prove", "prove pfs", "prove innodb-metrics", "prove variable", "prove program"],
    ),
    (
        "cli-lab.md",
        &[
            "lab",
            "lab run",
            "lab resume",
            "lab suites",
            "lab list",
            "lab show",
            "lab report",
            "lab compare",
        ],
    ),
];
const HEAD: &str = "# The commands of waggle\n\n\
                    What `--help` prints. After a change: \
                    `UPDATE=1 cargo test -p waggle --test help`.\n";

fn help_of(command: &str) -> String {
    let words = command.split_whitespace().chain(["--help"]);
    let output = Command::new(env!("CARGO_BIN_EXE_waggle")).args(words).output().unwrap();
    assert!(output.status.success(), "waggle {command} --help ended with {}", output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn page(commands: &[&str]) -> String {
    let section = |command: &&str| {
        let name = format!("waggle {command}");
        format!("\n## `{}`\n\n```text\n{}\n```\n", name.trim_end(), help_of(command))
    };
    HEAD.to_owned() + &commands.iter().map(section).collect::<String>()
}

#[test]
fn the_reference_of_the_commands_is_what_help_prints() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    for (name, commands) in PAGES {
        let (path, now) = (folder.join(name), page(commands));
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &now).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        let differing = now.lines().zip(kept.lines()).find(|(now, kept)| now != kept);
        assert!(
            now == kept,
            "docs/reference/{name} is not what --help prints; run UPDATE=1 cargo test -p waggle \
             --test help and commit the file; the first line that differs (help, file): {differing:?}"
        );
    }
}

#[test]
fn every_command_is_in_the_reference() {
    let help = help_of("");
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names: Vec<&str> = listed
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(!names.is_empty(), "waggle --help lists no commands: {help}");
    let is_listed = |name: &str| PAGES.iter().any(|(_, commands)| commands.contains(&name));
    let missing: Vec<_> = names.iter().filter(|name| !is_listed(name)).collect();
    assert!(missing.is_empty(), "add these to PAGES of this test: {missing:?}");
}

#[test]
fn every_command_shows_an_example() {
    let commands = PAGES.iter().flat_map(|(_, commands)| *commands).filter(|name| !name.is_empty());
    let without: Vec<_> = commands.filter(|name| !help_of(name).contains("Example")).collect();
    assert!(without.is_empty(), "their --help shows no example: {without:?}");
}
