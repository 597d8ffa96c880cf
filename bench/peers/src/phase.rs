//! The phases of bench/phase, in Rust: same traffic, same order, same clocks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock::{self, Samples, Stopwatch};
use crate::dump::{
    Conversation, Dump, GROWN, PER_EVENT, Pick, SHARED, SIZE, Stretch, Truth, WINDOW,
};

/// Takes events. Converting them and hashing their tokens is part of the work.
pub trait Writer: Send {
    fn store(&mut self, s: Stretch);
    fn remove(&mut self, rank: usize, aliases: &[u64]);
    fn drop_rank(&mut self, rank: usize);
    /// Returns when all that was told is applied.
    fn flush(&mut self) {}
    /// CPU time the calling thread and those that write for it have spent.
    fn cpu(&self) -> Duration {
        clock::thread()
    }
}

/// Answers lookups, hashing included.
pub trait Reader {
    fn lookup(&mut self, tokens: &[u32]);
    /// What the last lookup found for a rank.
    fn depth(&self, rank: usize) -> Truth;
    /// The hashing of a lookup alone.
    fn hash(&mut self, tokens: &[u32]);
}

/// Work done in CPU time.
#[derive(Default)]
pub struct Rate {
    blocks: usize,
    events: usize,
    cpu: Duration,
}

impl Rate {
    fn of<W: Writer + ?Sized>(w: &mut W, work: impl FnOnce(&mut W, &mut Rate)) -> Rate {
        let mut r = Rate::default();
        let t = w.cpu();
        work(w, &mut r);
        w.flush();
        r.cpu = w.cpu() - t;
        r
    }

    fn count(&mut self, blocks: usize) {
        self.blocks += blocks;
        self.events += 1;
    }

    fn store(&mut self, w: &mut (impl Writer + ?Sized), s: Stretch) {
        w.store(s);
        self.count(s.to - s.from);
    }

    pub fn blocks_per_second(&self) -> f64 {
        self.blocks as f64 / self.cpu.as_secs_f64()
    }

    pub fn events_per_second(&self) -> f64 {
        self.events as f64 / self.cpu.as_secs_f64()
    }
}

pub fn load(w: &mut dyn Writer, d: &Dump, host: bool) -> Rate {
    Rate::of(w, |w, r| d.stores(host).for_each(|s| r.store(w, s)))
}

fn backwards(s: Stretch) -> Vec<u64> {
    s.aliases().iter().rev().copied().collect()
}

/// Evicts each pick's tail, last block first, and stores it again WINDOW
/// evictions later. Single evictions come as one event per block.
pub fn mix(w: &mut dyn Writer, d: &Dump, picks: &[Pick], single: bool) -> Rate {
    let per = if single { 1 } else { PER_EVENT };
    let gone: Vec<Vec<u64>> = picks.iter().map(|&p| backwards(d.tail(p))).collect();
    Rate::of(w, |w, r| {
        for i in 0..picks.len() + WINDOW {
            if i < picks.len() {
                for g in gone[i].chunks(per) {
                    w.remove(d.tail(picks[i]).rank, g);
                    r.count(g.len());
                }
            }
            if i >= WINDOW {
                d.tail(picks[i - WINDOW])
                    .cut(PER_EVENT)
                    .for_each(|s| r.store(w, s));
            }
        }
    })
}

/// Lets the picked holders grow by one block per event, in turns.
pub fn decode(w: &mut dyn Writer, d: &Dump, picks: &[Pick]) -> Rate {
    for &p in picks {
        w.remove(d.tail(p).rank, &backwards(d.tail(p)));
    }
    w.flush();
    let rate = Rate::of(w, |w, r| {
        for from in SHARED..SHARED + GROWN {
            for &p in picks {
                r.store(
                    w,
                    Stretch {
                        from,
                        to: from + 1,
                        ..d.tail(p)
                    },
                );
            }
        }
    });
    for &p in picks {
        let rest = Stretch {
            from: SHARED + GROWN,
            ..d.tail(p)
        };
        rest.cut(PER_EVENT).for_each(|s| w.store(s));
    }
    w.flush();
    rate
}

#[derive(Default)]
pub struct Lookups {
    pub cold: Samples,
    pub hot: Samples,
    pub miss: Samples,
    pub hash: Samples,
}

fn prompt(buffer: &mut Vec<u32>, c: &Conversation) {
    buffer.clear();
    buffer.extend_from_slice(&c.tokens);
}

/// Cold is the first lookup of a conversation since long, hot the third in a
/// row, and miss has other tokens behind the blocks shared by the app.
pub fn lookups(x: &mut dyn Reader, d: &Dump, picks: &[usize]) -> Lookups {
    let mut l = Lookups::default();
    let watch = Stopwatch::new();
    let mut tokens = Vec::new();
    for &i in picks {
        prompt(&mut tokens, &d.conversations[i]);
        l.cold.0.push(watch.time(|| x.lookup(&tokens)));
        x.lookup(&tokens);
        l.hot.0.push(watch.time(|| x.lookup(&tokens)));

        x.hash(&tokens);
        x.hash(&tokens);
        l.hash.0.push(watch.time(|| x.hash(&tokens)));

        tokens[SHARED * SIZE..]
            .iter_mut()
            .for_each(|t| *t ^= 0x10000);
        l.miss.0.push(watch.time(|| x.lookup(&tokens)));
    }
    l
}

/// Cold lookups while a second thread removes and stores flat out.
pub fn beside(
    x: &mut dyn Reader,
    w: &mut dyn Writer,
    d: &Dump,
    picks: &[usize],
) -> (Samples, Rate) {
    let (stop, running) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|threads| {
        let writer = threads.spawn(|| {
            Rate::of(w, |w, r| {
                running.store(true, Ordering::Release);
                for s in d.refresh.iter().cycle().filter_map(|&p| d.last(p)) {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    w.remove(s.rank, s.aliases());
                    r.count(s.to - s.from);
                    r.store(w, s);
                }
            })
        });
        while !running.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        let mut samples = Samples::default();
        let watch = Stopwatch::new();
        let mut tokens = Vec::new();
        for &i in picks {
            prompt(&mut tokens, &d.conversations[i]);
            samples.0.push(watch.time(|| x.lookup(&tokens)));
        }
        stop.store(true, Ordering::Relaxed);
        (samples, writer.join().unwrap())
    })
}

/// The depths that differ from the truth.
pub fn wrong(x: &mut dyn Reader, d: &Dump, truths: &[Truth]) -> usize {
    let mut wrong = 0;
    for (c, truths) in d.checked().zip(truths.chunks(d.ranks)) {
        x.lookup(&c.tokens);
        wrong += truths
            .iter()
            .enumerate()
            .filter(|&(rank, t)| x.depth(rank) != *t)
            .count();
    }
    wrong
}

/// Removes the first `n` ranks.
pub fn drops(w: &mut dyn Writer, n: usize) -> Samples {
    let one = |rank| {
        let t = w.cpu();
        w.drop_rank(rank);
        w.flush();
        w.cpu() - t
    };
    Samples((0..n).map(one).collect())
}
