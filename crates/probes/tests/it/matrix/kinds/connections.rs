//! Many sessions that come and go, with the same memory in the server.

use waggle_testkit::Account;

use crate::matrix::scene::Scene;
use crate::matrix::talker::Login;

/// Every session is another user's in another database than the one before it.
fn come_and_go(scene: &mut Scene, connections: usize, open_at_once: usize) {
    let databases = ["test", "abcd", "efgh", "much_longer_name"];
    let mut open = std::collections::VecDeque::new();
    for number in 0..connections {
        let account = if number % 3 == 0 { Account::SECRET } else { Account::APP };
        let database = Some(databases[number % databases.len()]);
        let mut talker = scene.open_as(&Login { account, database, ..scene.login() });
        talker.run(&format!("SELECT {number}"));
        open.push_back(talker);
        if open.len() > open_at_once {
            let mut oldest = open.pop_front().unwrap();
            oldest.run("SELECT 'last'");
            // Half of them leave without a word.
            if number % 2 == 0 {
                oldest.client.hang_up();
            }
        }
        if number % 100 == 0 {
            scene.drain();
        }
    }
}

pub(crate) fn fifty(scene: &mut Scene) {
    come_and_go(scene, 50, 5);
}

pub(crate) fn thousand(scene: &mut Scene) {
    come_and_go(scene, 1000, 100);
}
