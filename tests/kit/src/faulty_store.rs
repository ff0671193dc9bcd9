//! A store that fails on request.

use std::collections::{HashSet, VecDeque};
use std::panic::resume_unwind;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use ringflake::lease::{
    Acquire, Fence, Grant, LeaseStore, MemoryStore, Namespace, OpenOptions, Renew, StoreError,
    StoreKey,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Acquire,
    Renew,
    Release,
    Check,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done, and the store says so.
    Down,
    /// It is done, and the reply is lost.
    Cut,
    /// A renewal is refused for good; nothing else goes wrong.
    Fence,
    Panic,
    /// An acquisition gives no block, and no error either.
    Nothing,
}

/// A store in memory, with a plug to pull. Clones share everything.
#[derive(Clone, Debug)]
pub struct Faulty {
    pub inner: MemoryStore,
    shared: Arc<Shared>,
    key: Option<StoreKey>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Not behind the lock: a forked child may read them.
    calls: [AtomicU64; 5],
    plan: Mutex<Plan>,
    changed: Condvar,
    /// All that was ever granted, with the ends that were answered.
    granted: Mutex<Vec<Grant>>,
    /// Those that asked anything.
    threads: Mutex<HashSet<ThreadId>>,
}

#[derive(Debug, Default)]
struct Plan {
    lasting: Option<Fault>,
    once: VecDeque<(Op, Fault)>,
    holds: bool,
    held: usize,
}

impl Faulty {
    pub fn new(inner: MemoryStore) -> Self {
        Self {
            inner,
            shared: Arc::default(),
            key: None,
        }
    }

    /// The same, shared by those to whom it has this name.
    pub fn shared_as(mut self, name: &str) -> Self {
        let url = format!("faulty:{name}");
        self.key = Some(StoreKey::new(&url, &OpenOptions::new()));
        self
    }

    pub fn threads(&self) -> usize {
        unpoisoned(&self.shared.threads).len()
    }

    pub fn fail(&self, fault: Fault) {
        self.plan().lasting = Some(fault);
    }

    pub fn heal(&self) {
        let mut plan = self.plan();
        plan.lasting = None;
        plan.once.clear();
    }

    pub fn fail_next(&self, op: Op, fault: Fault) {
        self.plan().once.push_back((op, fault));
    }

    /// Whether all that was to fail once has.
    pub fn has_failed(&self) -> bool {
        self.plan().once.is_empty()
    }

    /// Operations don't return before [`let_go`](Self::let_go).
    pub fn hold(&self) {
        self.plan().holds = true;
    }

    pub fn held(&self) -> usize {
        self.plan().held
    }

    pub fn let_go(&self) {
        self.plan().holds = false;
        self.shared.changed.notify_all();
    }

    pub fn calls(&self, op: Op) -> u64 {
        self.shared.calls[op as usize].load(Relaxed)
    }

    /// All that was ever granted by a reply that arrived.
    pub fn granted(&self) -> Vec<Grant> {
        self.grants().clone()
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        unpoisoned(&self.shared.plan)
    }

    fn grants(&self) -> MutexGuard<'_, Vec<Grant>> {
        unpoisoned(&self.shared.granted)
    }

    fn forward<T>(
        &mut self,
        operation: &str,
        work: impl FnOnce(&mut MemoryStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let op = match operation {
            "release" => Op::Release,
            "check" => Op::Check,
            _ => Op::Other,
        };
        self.pass_or(op, work, |_| None)
    }

    /// With an answer of its own to some faults.
    fn pass_or<T>(
        &mut self,
        op: Op,
        work: impl FnOnce(&mut MemoryStore) -> Result<T, StoreError>,
        instead: impl FnOnce(Fault) -> Option<Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.shared.calls[op as usize].fetch_add(1, Relaxed);
        unpoisoned(&self.shared.threads).insert(thread::current().id());
        let result = match self.fault_of(op) {
            None => work(&mut self.inner),
            Some(fault @ (Fault::Fence | Fault::Nothing)) => {
                instead(fault).unwrap_or_else(|| work(&mut self.inner))
            }
            Some(Fault::Down) => Err(StoreError::Unavailable {
                source: "the plug is pulled".into(),
            }),
            Some(Fault::Cut) => work(&mut self.inner).and_then(|_| {
                Err(StoreError::Ambiguous {
                    operation: "an operation",
                    source: "the reply is lost".into(),
                })
            }),
            // Without the panic hook, which would write to the test's output.
            Some(Fault::Panic) => resume_unwind(Box::new("the store fails")),
        };
        // After the work: a reply can be late.
        let mut plan = self.plan();
        plan.held += 1;
        // Longer than `eventually` waits, but not for ever.
        let (patience, changed) = (Duration::from_secs(90), &self.shared.changed);
        let held = changed.wait_timeout_while(plan, patience, |plan| plan.holds);
        held.unwrap_or_else(PoisonError::into_inner).0.held -= 1;
        result
    }

    fn fault_of(&self, op: Op) -> Option<Fault> {
        let mut plan = self.plan();
        let next = plan.once.iter().position(|&(kind, _)| kind == op);
        let once = next.and_then(|next| plan.once.remove(next));
        once.map(|(_, fault)| fault).or(plan.lasting)
    }
}

fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LeaseStore for Faulty {
    ringflake::forward_store! { self.forward =>
        init release list raise_floor check write_test
    }

    fn acquire(&mut self, space: &Namespace, acquire: &Acquire) -> Result<Vec<Grant>, StoreError> {
        let grants = self.pass_or(
            Op::Acquire,
            |store| store.acquire(space, acquire),
            |fault| (fault == Fault::Nothing).then(|| Ok(Vec::new())),
        )?;
        self.grants().extend_from_slice(&grants);
        Ok(grants)
    }

    fn renew(&mut self, space: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        let fenced = || StoreError::Fenced {
            block: renew.block,
            fence: Fence::NeverGranted,
        };
        let end = self.pass_or(
            Op::Renew,
            |store| store.renew(space, renew),
            |fault| (fault == Fault::Fence).then(|| Err(fenced())),
        )?;
        let held = (renew.block, renew.epoch);
        let mut grants = self.grants();
        let mut renewed = grants.iter_mut().filter(|g| (g.block, g.epoch) == held);
        renewed.next().expect("only grants are renewed").ticks.end = end;
        Ok(end)
    }

    fn key(&self) -> Option<StoreKey> {
        self.key.clone()
    }
}
