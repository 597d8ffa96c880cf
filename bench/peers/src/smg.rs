//! smg's ChainIndex. One lane map per worker, as its lanes keep them.

use std::mem::take;

use kv_index::{
    ChainBlockMap, ChainIndex, ContentHash, SequenceHash, StoredBlock, compute_content_hash,
    compute_request_content_hashes,
};

use crate::dump::{SIZE, Stretch, Truth};
use crate::phase::{Reader, Writer};

/// An index with no more worker slots than it needs, which is least memory.
pub fn index(ranks: usize) -> ChainIndex {
    let index = ChainIndex::with_max_workers(ranks);
    for rank in 0..ranks {
        // Ids are handed out in order, so a rank's id is the rank.
        assert_eq!(
            index.intern_worker(&format!("rank-{rank}")).unwrap(),
            rank as u32
        );
    }
    index
}

pub struct Lanes<'a> {
    index: &'a ChainIndex,
    maps: Vec<ChainBlockMap>,
    blocks: Vec<StoredBlock>,
    gone: Vec<SequenceHash>,
}

impl<'a> Lanes<'a> {
    pub fn new(index: &'a ChainIndex, ranks: usize) -> Self {
        let maps = (0..ranks).map(|_| ChainBlockMap::new()).collect();
        Lanes {
            index,
            maps,
            blocks: Vec::new(),
            gone: Vec::new(),
        }
    }
}

impl Writer for Lanes<'_> {
    fn store(&mut self, s: Stretch) {
        self.blocks.clear();
        let tokens = s.tokens().chunks_exact(SIZE);
        self.blocks.extend(
            s.aliases()
                .iter()
                .zip(tokens)
                .map(|(&alias, tokens)| StoredBlock {
                    seq_hash: SequenceHash(alias),
                    content_hash: compute_content_hash(tokens),
                }),
        );
        let map = &mut self.maps[s.rank];
        self.index
            .apply_stored(
                s.rank as u32,
                &self.blocks,
                s.parent().map(SequenceHash),
                map,
            )
            .expect("the parent is known");
    }

    fn remove(&mut self, rank: usize, aliases: &[u64]) {
        self.gone.clear();
        self.gone.extend(aliases.iter().copied().map(SequenceHash));
        self.index
            .apply_removed(rank as u32, &self.gone, &mut self.maps[rank]);
    }

    fn drop_rank(&mut self, rank: usize) {
        self.index
            .remove_worker(rank as u32, take(&mut self.maps[rank]));
    }
}

pub struct Queries<'a> {
    index: &'a ChainIndex,
    scores: Vec<(u32, u32)>,
}

impl<'a> Queries<'a> {
    pub fn new(index: &'a ChainIndex) -> Self {
        Queries {
            index,
            scores: Vec::new(),
        }
    }
}

impl Reader for Queries<'_> {
    fn lookup(&mut self, tokens: &[u32]) {
        let hashes = compute_request_content_hashes(tokens, SIZE);
        self.scores.clear();
        let scores = &mut self.scores;
        let hash_of = |h: &ContentHash| h.0;
        self.index
            .score_into(&hashes, hash_of, false, |rank, depth| {
                scores.push((rank, depth))
            });
    }

    fn depth(&self, rank: usize) -> Truth {
        let found = self.scores.iter().find(|s| s.0 as usize == rank);
        let depth = found.map_or(0, |s| s.1 as usize);
        Truth { gpu: depth, depth }
    }

    fn hash(&mut self, tokens: &[u32]) {
        std::hint::black_box(compute_request_content_hashes(tokens, SIZE));
    }
}
