//! Measures one KV index on a dumped workload and prints what it measured as one
//! JSON object: `peers smg|dynamo|dynamo-tiers DUMP LOOKUPS`.

mod clock;
mod dump;
mod dynamo;
mod phase;
mod smg;

use std::collections::HashSet;
use std::sync::Arc;

use dynamo_kv_router::ConcurrentRadixTreeCompressed;
use dynamo_kv_router::indexer::LowerTierIndexers;

use dump::{Dump, SIZE, Truth};
use phase::{Reader, Writer};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, path, lookups] = &args[..] else {
        eprintln!("usage: peers smg|dynamo|dynamo-tiers DUMP LOOKUPS");
        std::process::exit(2);
    };
    let d = Dump::read(path).expect("the dump can be read");
    let lookups = lookups.parse().expect("LOOKUPS is a number");
    let before = clock::heap();
    let tree = || Arc::new(ConcurrentRadixTreeCompressed::new());
    let report = match name.as_str() {
        "smg" => {
            let index = smg::index(d.ranks);
            let (mut w, mut x) = (smg::Lanes::new(&index, d.ranks), smg::Queries::new(&index));
            one_tier(&d, lookups, before, &mut x, &mut w)
        }
        "dynamo" => {
            let tree = tree();
            let mut w = dynamo::Lane::new(tree.clone(), None);
            one_tier(&d, lookups, before, &mut dynamo::OneTier::new(tree), &mut w)
        }
        "dynamo-tiers" => {
            let (tree, lower) = (tree(), Arc::new(LowerTierIndexers::new(1, SIZE as u32)));
            let mut w = dynamo::Lane::new(tree.clone(), Some(lower.clone()));
            two_tiers(
                &d,
                lookups,
                before,
                &mut dynamo::TwoTiers::new(tree, lower),
                &mut w,
            )
        }
        _ => panic!("no index is called {name}"),
    };
    println!("{{{}}}", report.0.join(","));
}

/// Values by name, as JSON members.
#[derive(Default)]
struct Report(Vec<String>);

impl Report {
    fn add(&mut self, name: &str, value: f64) {
        self.0.push(format!("{name:?}:{value}"));
    }

    fn heap(&mut self, d: &Dump, host: bool, before: usize) {
        let grown = clock::heap() - before;
        let mut distinct = HashSet::<u64>::new();
        d.stores(host).for_each(|s| distinct.extend(s.aliases()));
        self.add("bytes_per_block", grown as f64 / distinct.len() as f64);
    }

    fn lookups(&mut self, x: &mut dyn Reader, d: &Dump, n: usize) {
        for (blocks, picks) in [(512, &d.short), (2048, &d.long)] {
            let mut l = phase::lookups(x, d, &picks[..n.min(picks.len())]);
            for (kind, s) in [
                ("cold", &mut l.cold),
                ("hot", &mut l.hot),
                ("miss", &mut l.miss),
                ("hash", &mut l.hash),
            ] {
                self.add(&format!("lookup_{blocks}_{kind}"), s.micros(0.5));
                self.add(&format!("lookup_{blocks}_{kind}_p99"), s.micros(0.99));
            }
        }
    }
}

fn one_tier(
    d: &Dump,
    lookups: usize,
    before: usize,
    x: &mut dyn Reader,
    w: &mut dyn Writer,
) -> Report {
    let mut r = Report::default();
    r.add("load", phase::load(w, d, false).blocks_per_second());
    r.heap(d, false, before);
    r.add("wrong_depths", phase::wrong(x, d, &d.one_tier) as f64);
    r.lookups(x, d, lookups);
    r.add("mix", phase::mix(w, d, &d.evict, false).blocks_per_second());
    r.add(
        "mix_single",
        phase::mix(w, d, &d.evict, true).blocks_per_second(),
    );
    // Neither has a call for a batch: what a batch is of ours comes as the same
    // events in the same order.
    r.add(
        "mix_single_batched",
        phase::mix(w, d, &d.evict, true).blocks_per_second(),
    );
    r.add("decode", phase::decode(w, d, &d.decode).events_per_second());
    r.add(
        "decode_batched",
        phase::decode(w, d, &d.steps).events_per_second(),
    );
    let (mut reader, writer) = phase::beside(x, w, d, &d.long[..lookups.min(d.long.len())]);
    r.add("beside_writer_lookup_2048", reader.micros(0.5));
    r.add("beside_reader_writer", writer.blocks_per_second());
    r.add("wrong_depths_after", phase::wrong(x, d, &d.one_tier) as f64);
    r.add("remove_rank", phase::drops(w, 32).micros(0.5) / 1e3);
    r
}

/// Which tier a block is on counts for nothing here: the tier below is asked
/// only where the GPU's blocks end.
fn two_tiers(
    d: &Dump,
    lookups: usize,
    before: usize,
    x: &mut dyn Reader,
    w: &mut dyn Writer,
) -> Report {
    let mut r = Report::default();
    phase::load(w, d, true);
    r.heap(d, true, before);
    let truths: &[Truth] = &d.two_tiers;
    r.add("wrong_depths", phase::wrong(x, d, truths) as f64);
    r.lookups(x, d, lookups);
    r
}
