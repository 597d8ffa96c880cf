//! Dynamo's ConcurrentRadixTreeCompressed, and with a second tier its
//! LowerTierIndexers.
//!
//! The tree applies events only in its worker loop, on whose stack its lookup
//! table lives. So a thread runs that loop, events reach it through its channel
//! as they do in production, and what counts is the CPU time of both threads.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use dynamo_kv_router::indexer::{
    LowerTierIndexers, LowerTierQueryOptions, TieredMatchDetails, WorkerTask,
    query_lower_tiers_with_options,
};
use dynamo_kv_router::protocols::{
    BlockHashOptions, ExternalSequenceBlockHash, KvCacheEvent, KvCacheEventData, KvCacheRemoveData,
    KvCacheStoreData, KvCacheStoredBlockData, OverlapScores, RouterEvent, StorageTier,
    WorkerWithDpRank, compute_block_hash_for_seq,
};
use dynamo_kv_router::{ConcurrentRadixTreeCompressed, LocalBlockHash, SyncIndexer};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::clock::{self, ThreadClock};
use crate::dump::{SIZE, Stretch, Truth};
use crate::phase::{Reader, Writer};

/// Events sent ahead of the worker: enough that it does not wait, few enough to
/// stay in the cache.
const AHEAD: usize = 1024;

pub struct Lane {
    tasks: flume::Sender<WorkerTask>,
    worker: Option<JoinHandle<()>>,
    clock: ThreadClock,
    pending: usize,
    lower: Option<(Arc<LowerTierIndexers>, Runtime)>,
}

impl Lane {
    pub fn new(
        tree: Arc<ConcurrentRadixTreeCompressed>,
        lower: Option<Arc<LowerTierIndexers>>,
    ) -> Self {
        let (tasks, queue) = flume::unbounded();
        let (tell, clock) = mpsc::channel();
        let worker = std::thread::spawn(move || {
            tell.send(ThreadClock::mine()).unwrap();
            tree.worker(queue, None).unwrap();
        });
        let runtime = || {
            tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap()
        };
        Lane {
            tasks,
            worker: Some(worker),
            clock: clock.recv().unwrap(),
            pending: 0,
            lower: lower.map(|l| (l, runtime())),
        }
    }

    fn send(&mut self, event: RouterEvent) {
        if let Some((lower, _)) = &self.lower
            && !event.storage_tier.is_gpu()
        {
            lower
                .get_or_create(event.storage_tier)
                .enqueue_event(event)
                .unwrap();
            return;
        }
        self.tasks.send(WorkerTask::Event(event)).unwrap();
        self.pending += 1;
        if self.pending == AHEAD {
            self.flush();
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.tasks.send(WorkerTask::Terminate).unwrap();
        if let Some(worker) = self.worker.take() {
            worker.join().unwrap();
        }
    }
}

impl Writer for Lane {
    fn store(&mut self, s: Stretch) {
        let hashes = hashes(s.tokens());
        let blocks = s.aliases().iter().zip(hashes).map(|(&alias, tokens_hash)| {
            let block_hash = ExternalSequenceBlockHash(alias);
            KvCacheStoredBlockData {
                block_hash,
                tokens_hash,
                mm_extra_info: None,
            }
        });
        let data = KvCacheEventData::Stored(KvCacheStoreData {
            parent_hash: s.parent().map(ExternalSequenceBlockHash),
            start_position: None,
            blocks: blocks.collect(),
        });
        let tier = if s.host {
            StorageTier::HostPinned
        } else {
            StorageTier::Device
        };
        self.send(event(s.rank, data, tier));
    }

    fn remove(&mut self, rank: usize, aliases: &[u64]) {
        let block_hashes = aliases
            .iter()
            .copied()
            .map(ExternalSequenceBlockHash)
            .collect();
        let data = KvCacheEventData::Removed(KvCacheRemoveData { block_hashes });
        self.send(event(rank, data, StorageTier::Device));
    }

    fn drop_rank(&mut self, rank: usize) {
        let WorkerWithDpRank { worker_id, dp_rank } = worker(rank);
        let task = WorkerTask::RemoveWorkerDpRank {
            worker_id,
            dp_rank,
            sweep_tree: true,
        };
        self.tasks.send(task).unwrap();
    }

    fn flush(&mut self) {
        let (done, wait) = oneshot::channel();
        self.tasks.send(WorkerTask::Flush(done)).unwrap();
        wait.blocking_recv().unwrap();
        self.pending = 0;
        if let Some((lower, runtime)) = &self.lower {
            for indexer in lower.all() {
                runtime.block_on(indexer.flush_and_wait()).unwrap();
            }
        }
    }

    fn cpu(&self) -> Duration {
        clock::thread() + self.clock.read()
    }
}

fn worker(rank: usize) -> WorkerWithDpRank {
    WorkerWithDpRank::from_worker_id(rank as u64)
}

fn event(rank: usize, data: KvCacheEventData, tier: StorageTier) -> RouterEvent {
    let event = KvCacheEvent {
        event_id: 0,
        data,
        dp_rank: 0,
    };
    RouterEvent::with_storage_tier(rank as u64, event, tier)
}

fn hashes(tokens: &[u32]) -> Vec<LocalBlockHash> {
    compute_block_hash_for_seq(tokens, SIZE as u32, BlockHashOptions::default())
}

/// Lookups of the GPU's blocks alone.
pub struct OneTier {
    tree: Arc<ConcurrentRadixTreeCompressed>,
    found: OverlapScores,
}

impl OneTier {
    pub fn new(tree: Arc<ConcurrentRadixTreeCompressed>) -> Self {
        OneTier {
            tree,
            found: OverlapScores::new(),
        }
    }
}

impl Reader for OneTier {
    fn lookup(&mut self, tokens: &[u32]) {
        self.found = self.tree.find_matches(&hashes(tokens), false);
    }

    fn depth(&self, rank: usize) -> Truth {
        let depth = self
            .found
            .scores
            .get(&worker(rank))
            .map_or(0, |&n| n as usize);
        Truth { gpu: depth, depth }
    }

    fn hash(&mut self, tokens: &[u32]) {
        std::hint::black_box(hashes(tokens));
    }
}

/// Lookups on the GPU that go on, from where each rank ends there, in the tiers
/// below, as the router's own indexer service does them.
pub struct TwoTiers {
    tree: Arc<ConcurrentRadixTreeCompressed>,
    lower: Arc<LowerTierIndexers>,
    found: TieredMatchDetails,
}

impl TwoTiers {
    pub fn new(tree: Arc<ConcurrentRadixTreeCompressed>, lower: Arc<LowerTierIndexers>) -> Self {
        TwoTiers {
            tree,
            lower,
            found: TieredMatchDetails::default(),
        }
    }
}

impl Reader for TwoTiers {
    fn lookup(&mut self, tokens: &[u32]) {
        let hashes = hashes(tokens);
        let device = self.tree.find_match_details_impl(&hashes, false);
        let options = LowerTierQueryOptions::default();
        let lower_tier = query_lower_tiers_with_options(&self.lower, &hashes, &device, options);
        self.found = TieredMatchDetails { device, lower_tier };
    }

    fn depth(&self, rank: usize) -> Truth {
        let scores = &self.found.device.overlap_scores.scores;
        let gpu = scores.get(&worker(rank)).map_or(0, |&n| n as usize);
        let host = self.found.lower_tier.get(&StorageTier::HostPinned);
        let more = host
            .and_then(|l| l.hits.get(&worker(rank)))
            .copied()
            .unwrap_or(0);
        Truth {
            gpu,
            depth: gpu + more,
        }
    }

    fn hash(&mut self, tokens: &[u32]) {
        std::hint::black_box(hashes(tokens));
    }
}
