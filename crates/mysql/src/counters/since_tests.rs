use super::*;

fn counters(status: &[(&str, u64)]) -> Counters {
    Counters {
        flavour: Flavour::Mysql,
        version: "9.7.4".to_owned(),
        own_connection: 7,
        status: status.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        own_questions: 3,
        events: Reading::Value(BTreeMap::new()),
        own_events: BTreeMap::new(),
        connections: Reading::Value(BTreeMap::new()),
        digests: Reading::Value(BTreeMap::new()),
        histograms: Reading::absent("not read"),
    }
}

fn events(of: &[(&str, u64)]) -> BTreeMap<String, Sums> {
    of.iter().map(|(name, count)| ((*name).to_owned(), calls(*count))).collect()
}

fn calls(count: u64) -> Sums {
    Sums { count, rows_sent: count * 2, ..Sums::default() }
}

fn digests(of: &[(&str, u64)]) -> Reading<BTreeMap<DigestKey, DigestRow>> {
    let row = |(text, count): &(&str, u64)| {
        let key = DigestKey { schema: None, digest: Some((*text).to_owned()) };
        (key, DigestRow { text: (*text).to_owned(), sums: calls(*count) })
    };
    Reading::Value(of.iter().map(row).collect())
}

#[test]
fn our_own_statements_are_in_no_difference() {
    let mut earlier = counters(&[("questions", 100), ("uptime", 5)]);
    let mut later = counters(&[("questions", 160), ("uptime", 6)]);
    later.own_questions = 13;
    earlier.events = Reading::Value(events(&[("statement/sql/select", 90)]));
    later.events = Reading::Value(events(&[
        ("statement/sql/select", 130),
        ("statement/com/Execute", 9),
        ("statement/com/Quit", 2),
        ("statement/sp/stmt", 5),
    ]));
    earlier.own_events = events(&[("statement/sql/select", 3)]);
    later.own_events = events(&[("statement/sql/select", 12)]);
    earlier.digests = digests(&[("SELECT ?", 5), ("SELECT ? AS `waggle_own`", 1)]);
    later.digests = digests(&[("SELECT ?", 8), ("SELECT ? AS `waggle_own`", 9), ("DO ?", 1)]);
    let own = |count| {
        let select = [("statement/sql/select".to_owned(), count)];
        ConnectionCounts { events: BTreeMap::from(select), ..ConnectionCounts::default() }
    };
    later.connections = Reading::Value(BTreeMap::from([(7, own(12)), (8, own(4))]));

    let difference = later.since(&earlier).unwrap();
    assert_eq!(difference.questions, Reading::Value(50));
    assert_eq!(difference.statements_by_event(), Some(31 + 9));
    assert_eq!(difference.quits, Reading::Value(2));
    let digests = difference.digests.value().unwrap();
    let texts: Vec<_> = digests.iter().map(|one| (one.text.as_str(), one.sums.count)).collect();
    assert_eq!(texts, [("DO ?", 1), ("SELECT ?", 3)]);
    let connections = difference.connections.value().unwrap();
    assert_eq!(connections.keys().collect::<Vec<_>>(), [&8]);
    assert_eq!(connections[&8].statements, 4);
}

#[test]
fn an_emptied_table_is_absent_and_says_so() {
    let (mut earlier, mut later) = (counters(&[]), counters(&[]));
    earlier.digests = digests(&[("SELECT ?", 5)]);
    earlier.events = Reading::Value(events(&[("statement/sql/select", 9)]));
    for after in [&[("SELECT ?", 2)][..], &[]] {
        later.digests = digests(after);
        let difference = later.since(&earlier).unwrap();
        assert!(difference.digests.why().unwrap().contains("TRUNCATE"));
        assert!(difference.events.why().unwrap().contains("TRUNCATE"));
        assert_eq!(difference.statements_by_event(), None);
    }
}

#[test]
fn a_restart_in_between_is_an_error() {
    let (earlier, later) = (counters(&[("uptime", 50)]), counters(&[("uptime", 2)]));
    assert_eq!(later.since(&earlier).unwrap_err(), SinceError::Restarted);
}

#[test]
fn without_performance_schema_the_quits_come_from_the_connections_that_ended() {
    let mut earlier = counters(&[
        ("questions", 10),
        ("connections", 20),
        ("threads_connected", 3),
        ("aborted_clients", 1),
        ("aborted_connects", 0),
    ]);
    let mut later = counters(&[
        ("questions", 60),
        ("connections", 30),
        ("threads_connected", 5),
        ("aborted_clients", 2),
        ("aborted_connects", 1),
        ("com_stmt_send_long_data", 4),
    ]);
    earlier.events = Reading::absent("Performance Schema is off");
    later.events = Reading::absent("Performance Schema is off");
    let difference = later.since(&earlier).unwrap();
    assert_eq!(difference.quits, Reading::Value(10 - 2 - 1 - 1));
    let captured = [(Command(2), 3), (Command::QUERY, 36), (Command(14), 9), (Command::PREPARE, 5)];
    let statements = difference.statements_by_questions(&BTreeMap::from(captured));
    assert_eq!(statements, Reading::Value(50 - 6 - 4 - 3));
}

#[test]
fn a_histogram_is_the_growth_of_each_bucket() {
    let (mut earlier, mut later) = (counters(&[]), counters(&[]));
    earlier.digests = digests(&[("SELECT ?", 5)]);
    later.digests = digests(&[("SELECT ?", 9)]);
    let key = DigestKey { schema: None, digest: Some("SELECT ?".to_owned()) };
    let bucket = |low_ps, count| Bucket { low_ps, high_ps: low_ps + 10, count };
    let of = |buckets: Vec<Bucket>| Reading::Value(BTreeMap::from([(key.clone(), buckets)]));
    earlier.histograms = of(vec![bucket(10, 5)]);
    later.histograms = of(vec![bucket(10, 5), bucket(20, 3), bucket(40, 1)]);
    let difference = later.since(&earlier).unwrap();
    let digest = &difference.digests.value().unwrap()[0];
    assert_eq!(digest.histogram, [bucket(20, 3), bucket(40, 1)]);
}
