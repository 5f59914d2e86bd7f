//! Builds the tree: a blocker stands above its waiters. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::wait::{Key, LockKind, Source, Unknown, Wait};

/// One session and everybody who waits for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Who.
    pub key: Key,
    /// What it waits for; `None` for a root.
    pub wait: Option<Wait>,
    /// Further blockers of it; the tree shows it below the first one only.
    pub also_blocked_by: Vec<Key>,
    /// Whether it is a root only because the waits form a circle.
    pub in_circle: bool,
    /// Its waiters, longest wait first.
    pub waiters: Vec<Node>,
}

impl Node {
    /// How many wait below this one, at any depth.
    pub fn waiting(&self) -> usize {
        self.waiters.iter().map(|waiter| 1 + waiter.waiting()).sum()
    }
}

/// All waiters, each below its blocker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// Who blocks and does not wait, most waiters first.
    pub roots: Vec<Node>,
    /// Waiters whose blocker is not known, with those who wait for them.
    pub undetermined: Vec<(Unknown, Node)>,
}

impl Tree {
    /// Whether somebody in it waits for a lock.
    pub(super) fn has_lock_waits(&self) -> bool {
        fn waits(node: &Node) -> bool {
            node.wait.as_ref().is_some_and(|wait| wait.lock.kind != LockKind::None)
                || node.waiters.iter().any(waits)
        }
        !self.roots.is_empty() || self.undetermined.iter().any(|(_, node)| waits(node))
    }

    /// Builds the tree. Of two waits of one participant the first counts.
    pub fn build(waits: Vec<Wait>) -> Tree {
        let mut by_waiter: BTreeMap<Key, Wait> = BTreeMap::new();
        for wait in waits {
            by_waiter.entry(wait.waiter.clone()).or_insert(wait);
        }
        complete_queues(&mut by_waiter);
        let parents = parents(&by_waiter);
        let mut below: BTreeMap<Key, Vec<Key>> = BTreeMap::new();
        for (waiter, blockers) in &parents {
            if let Some(first) = blockers.first() {
                below.entry(first.clone()).or_default().push(waiter.clone());
            }
        }
        Builder { waits: by_waiter, parents, below, seen: BTreeSet::new() }.build()
    }

    /// All waits in it.
    pub fn waits(&self) -> Vec<Wait> {
        fn add(node: &Node, waits: &mut Vec<Wait>) {
            waits.extend(node.wait.clone());
            node.waiters.iter().for_each(|below| add(below, waits));
        }
        let mut waits = Vec::new();
        let nodes = self.undetermined.iter().map(|(_, node)| node);
        self.roots.iter().chain(nodes).for_each(|node| add(node, &mut waits));
        waits
    }

    /// Whether not all who block each waiter are named for certain.
    pub(super) fn is_in_doubt(&self) -> bool {
        let is_doubtful = |wait: &Wait| wait.by_elimination || wait.not_all.is_some();
        !self.undetermined.is_empty() || self.waits().iter().any(is_doubtful)
    }
}

/// Pairs of waiter and blocker are read up to a limit. A waiter whose pairs were cut off gets the
/// blockers of the other waiters in its queue.
fn complete_queues(waits: &mut BTreeMap<Key, Wait>) {
    let known: Vec<Wait> =
        waits.values().filter(|wait| !wait.blockers.is_empty()).cloned().collect();
    let is_cut_off = |wait: &&mut Wait| {
        wait.source == Source::Sql && wait.unknown.is_some() && wait.lock.record.is_some()
    };
    for wait in waits.values_mut().filter(is_cut_off) {
        if let Some(mate) = known.iter().find(|mate| mate.lock.same_queue(&wait.lock)) {
            wait.blockers = vec![mate.waiter.clone()];
            wait.blockers.extend(mate.blockers.iter().cloned());
            wait.unknown = None;
        }
    }
}

/// The blockers of each waiter, without those who only stand before it in the queue: N waiters for
/// one row hang below its holder as a list, not below each other. Who does not wait stands first.
fn parents(waits: &BTreeMap<Key, Wait>) -> BTreeMap<Key, Vec<Key>> {
    let of = |wait: &Wait| {
        let is_mate = |key: &&Key| {
            waits.get(*key).is_some_and(|other| {
                other.lock.same_queue(&wait.lock) && !other.blockers.is_empty()
            })
        };
        let mut holders: Vec<Key> =
            wait.blockers.iter().filter(|key| !is_mate(key)).cloned().collect();
        if holders.is_empty() {
            holders = wait.blockers.iter().take(1).cloned().collect();
        }
        holders.retain(|key| *key != wait.waiter);
        holders.sort_by_key(|key| (waits.contains_key(key), key.clone()));
        holders.dedup();
        (wait.waiter.clone(), holders)
    };
    waits.values().map(of).collect()
}

struct Builder {
    waits: BTreeMap<Key, Wait>,
    parents: BTreeMap<Key, Vec<Key>>,
    below: BTreeMap<Key, Vec<Key>>,
    seen: BTreeSet<Key>,
}

impl Builder {
    fn build(mut self) -> Tree {
        let mut tree = Tree::default();
        let roots: Vec<Key> =
            self.below.keys().filter(|key| !self.waits.contains_key(*key)).cloned().collect();
        tree.roots = roots.into_iter().filter_map(|key| self.node(key)).collect();
        let orphans: Vec<(Unknown, Key)> = self
            .waits
            .values()
            .filter_map(|wait| Some((wait.unknown.clone()?, wait.waiter.clone())))
            .collect();
        for (unknown, key) in orphans {
            tree.undetermined.extend(self.node(key).map(|node| (unknown, node)));
        }
        // What is left waits in a circle: the server reads its locks one after the other, and does
        // not see circles of row and metadata locks.
        while let Some(key) = self.longest_unseen() {
            let node = self.node(key).map(|node| Node { in_circle: true, ..node });
            tree.roots.extend(node);
        }
        tree.roots.sort_by_key(|node| (std::cmp::Reverse(node.waiting()), node.key.clone()));
        tree
    }

    fn longest_unseen(&self) -> Option<Key> {
        let left = self.waits.values().filter(|wait| !self.seen.contains(&wait.waiter));
        left.max_by(|one, two| by_time(one, two)).map(|wait| wait.waiter.clone())
    }

    /// `None` for one that is already in the tree.
    fn node(&mut self, key: Key) -> Option<Node> {
        if !self.seen.insert(key.clone()) {
            return None;
        }
        let mut below = self.below.remove(&key).unwrap_or_default();
        below.sort_by(|one, two| match (self.waits.get(one), self.waits.get(two)) {
            (Some(one), Some(two)) => by_time(two, one),
            _ => one.cmp(two),
        });
        let waiters = below.into_iter().filter_map(|waiter| self.node(waiter)).collect();
        let also_blocked_by =
            self.parents.get(&key).map_or(Vec::new(), |all| all.iter().skip(1).cloned().collect());
        let wait = self.waits.get(&key).cloned();
        Some(Node { key, wait, also_blocked_by, in_circle: false, waiters })
    }
}

/// The longer wait is the greater; of two equal ones that of the older session.
fn by_time(one: &Wait, two: &Wait) -> std::cmp::Ordering {
    let seconds = |wait: &Wait| wait.waited_s.unwrap_or(0.0);
    seconds(one).total_cmp(&seconds(two)).then_with(|| two.waiter.cmp(&one.waiter))
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
