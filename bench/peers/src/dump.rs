//! The workload, read from the file the Go side writes; see bench/workload/dump.go
//! for the format and for what everything means.

use std::fs::File;
use std::io::{BufReader, Error, Read, Result};

pub const SIZE: usize = 16; // tokens per block
pub const SHARED: usize = 128; // leading blocks common to an app
pub const PER_EVENT: usize = 32;
pub const WINDOW: usize = 64; // evictions until the blocks come back
pub const GROWN: usize = 64; // blocks a decoder gains

pub struct Holder {
    pub rank: usize,
    pub gpu: usize,
    pub host: usize,
}

pub struct Conversation {
    pub tokens: Vec<u32>,
    pub aliases: Vec<u64>,
    pub holders: Vec<Holder>,
}

#[derive(Clone, Copy)]
pub struct Pick {
    conversation: usize,
    holder: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Truth {
    pub gpu: usize,
    pub depth: usize,
}

pub struct Dump {
    pub ranks: usize,
    pub conversations: Vec<Conversation>,
    pub order: Vec<usize>,
    pub short: Vec<usize>,
    pub long: Vec<usize>,
    pub refresh: Vec<Pick>,
    pub evict: Vec<Pick>,
    pub decode: Vec<Pick>,
    pub steps: Vec<Pick>,
    pub one_tier: Vec<Truth>,
    pub two_tiers: Vec<Truth>,
}

/// Blocks `from..to` of a conversation on one rank and tier.
#[derive(Clone, Copy)]
pub struct Stretch<'a> {
    pub conversation: &'a Conversation,
    pub rank: usize,
    pub host: bool,
    pub from: usize,
    pub to: usize,
}

impl<'a> Stretch<'a> {
    pub fn aliases(&self) -> &'a [u64] {
        &self.conversation.aliases[self.from..self.to]
    }

    pub fn tokens(&self) -> &'a [u32] {
        &self.conversation.tokens[self.from * SIZE..self.to * SIZE]
    }

    pub fn parent(&self) -> Option<u64> {
        (self.from > 0).then(|| self.conversation.aliases[self.from - 1])
    }

    /// The stretch in pieces of at most `per` blocks.
    pub fn cut(self, per: usize) -> impl Iterator<Item = Stretch<'a>> {
        (self.from..self.to).step_by(per).map(move |from| Stretch {
            from,
            to: self.to.min(from + per),
            ..self
        })
    }
}

impl Dump {
    pub fn read(path: &str) -> Result<Dump> {
        let mut r = Words(BufReader::with_capacity(1 << 20, File::open(path)?));
        let mut head = [0; 8];
        r.0.read_exact(&mut head)?;
        if &head != b"eppbench" {
            return Err(Error::other(format!("{path} is not a dump")));
        }
        Ok(Dump {
            ranks: r.number()?,
            conversations: r.list(|r| {
                Ok(Conversation {
                    tokens: r.list(|r| r.u32())?,
                    aliases: r.list(|r| r.u64())?,
                    holders: r.list(|r| {
                        Ok(Holder {
                            rank: r.number()?,
                            gpu: r.number()?,
                            host: r.number()?,
                        })
                    })?,
                })
            })?,
            order: r.list(|r| r.number())?,
            short: r.list(|r| r.number())?,
            long: r.list(|r| r.number())?,
            refresh: r.picks()?,
            evict: r.picks()?,
            decode: r.picks()?,
            steps: r.picks()?,
            one_tier: r.truths()?,
            two_tiers: r.truths()?,
        })
    }

    /// Every store event in order: per conversation and holder the GPU's blocks,
    /// then, if asked for, the host's.
    pub fn stores(&self, host: bool) -> impl Iterator<Item = Stretch<'_>> {
        self.order
            .iter()
            .map(|&i| &self.conversations[i])
            .flat_map(|c| c.holders.iter().map(move |h| (c, h)))
            .flat_map(move |(conversation, h)| {
                let gpu = Stretch {
                    conversation,
                    rank: h.rank,
                    host: false,
                    from: 0,
                    to: h.gpu,
                };
                let below = Stretch {
                    host: true,
                    to: if host { h.host } else { 0 },
                    ..gpu
                };
                gpu.cut(PER_EVENT).chain(below.cut(PER_EVENT))
            })
    }

    /// The conversations whose depths are compared on every rank.
    pub fn checked(&self) -> impl Iterator<Item = &Conversation> {
        (0..300).map(|i| &self.conversations[37 * i % self.conversations.len()])
    }

    /// The blocks behind the shared ones that the picked holder has on its GPU.
    pub fn tail(&self, p: Pick) -> Stretch<'_> {
        let conversation = &self.conversations[p.conversation];
        let h = &conversation.holders[p.holder];
        Stretch {
            conversation,
            rank: h.rank,
            host: false,
            from: SHARED,
            to: h.gpu,
        }
    }

    /// The end of what the picked holder has on its GPU, none of it shared.
    pub fn last(&self, p: Pick) -> Option<Stretch<'_>> {
        let tail = self.tail(p);
        let from = (SHARED + SIZE).max(tail.to.saturating_sub(PER_EVENT));
        (from < tail.to).then_some(Stretch { from, ..tail })
    }
}

struct Words(BufReader<File>);

impl Words {
    fn u32(&mut self) -> Result<u32> {
        let mut b = [0; 4];
        self.0.read_exact(&mut b)?;
        Ok(u32::from_le_bytes(b))
    }

    fn u64(&mut self) -> Result<u64> {
        let mut b = [0; 8];
        self.0.read_exact(&mut b)?;
        Ok(u64::from_le_bytes(b))
    }

    fn number(&mut self) -> Result<usize> {
        Ok(self.u32()? as usize)
    }

    fn list<T>(&mut self, mut each: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        (0..self.number()?).map(|_| each(self)).collect()
    }

    fn picks(&mut self) -> Result<Vec<Pick>> {
        self.list(|r| {
            Ok(Pick {
                conversation: r.number()?,
                holder: r.number()?,
            })
        })
    }

    fn truths(&mut self) -> Result<Vec<Truth>> {
        self.list(|r| {
            Ok(Truth {
                gpu: r.number()?,
                depth: r.number()?,
            })
        })
    }
}
