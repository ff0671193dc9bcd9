//! What cluster and Sentinel clients are told, and prefixes of keys.

use super::*;

fn announcing() -> Bench {
    let mut bench = Bench::new(Everything);
    let shared = Arc::get_mut(&mut bench.context.shared).unwrap();
    shared.announced = crate::resp::announced::Announced::new("ids.example.com:6380");
    shared.key_prefix = "app:".to_owned();
    bench
}

fn array(frame: &OwnedFrame) -> &[OwnedFrame] {
    match frame {
        OwnedFrame::Array(frames) => frames,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_node_has_all_slots() {
    let mut bench = announcing();
    let slots = bench.line("CLUSTER SLOTS");
    let [range] = array(&slots) else {
        panic!("{slots:?}")
    };
    let [first, last, node] = array(range) else {
        panic!("{range:?}")
    };
    assert_eq!(*first, OwnedFrame::Integer(0));
    assert_eq!(*last, OwnedFrame::Integer(16_383));
    assert_eq!(array(node)[0], string("ids.example.com"));
    assert_eq!(array(node)[1], OwnedFrame::Integer(6380));
    let id = bench.line("CLUSTER MYID");
    assert_eq!(array(node)[2], id);
    let (nodes, _) = bench.answer(&[b"CLUSTER NODES\r\n"]);
    let nodes = String::from_utf8(nodes).unwrap();
    assert!(
        nodes.contains(" ids.example.com:6380@6380 myself,master "),
        "{nodes}"
    );
    assert_eq!(
        bench.line("CLUSTER KEYSLOT 123456789"),
        OwnedFrame::Integer(12_739)
    );
}

#[test]
fn sentinel_clients_find_the_primary() {
    let mut bench = announcing();
    let expected = [string("ids.example.com"), string("6380")];
    let address = bench.line("SENTINEL get-master-addr-by-name anything");
    assert_eq!(array(&address), expected);
    let primaries = bench.line("SENTINEL MASTERS");
    let [primary] = array(&primaries) else {
        panic!("{primaries:?}")
    };
    assert_eq!(array(primary)[1], string("mymaster"));
    assert_eq!(
        bench.line("SENTINEL REPLICAS mymaster"),
        OwnedFrame::Array(Vec::new())
    );
    assert_eq!(array(&bench.line("ROLE"))[0], string("master"));
}

#[test]
fn without_an_address_there_is_no_cluster() {
    let mut bench = Bench::new(Everything);
    assert_eq!(
        bench.error("CLUSTER SLOTS"),
        "ERR This instance has cluster support disabled"
    );
    assert!(bench.error("SENTINEL MASTERS").contains("resp.announce"));
}

#[test]
fn a_prefix_of_keys_is_cut_off() {
    let mut bench = announcing();
    bench.lines("INCR app:orders\nINCR orders\nLPOP app:orders 2");
    assert_eq!(bench.opened, ["orders"]);
}
