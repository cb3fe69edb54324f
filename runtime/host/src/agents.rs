//! Which agents a run may start by name: what is installed, and its own package.
//!
//! A package is looked up each time, so that what was taken back meanwhile is not
//! started; what it was compiled to is kept, by the digest of its bytes.
//!
//! # Invariants
//! - I9: an installed package is bounded by what was agreed to, whoever starts it.
//! - Nothing compiles on a thread that lets tasks go on.
//!
//! # Not here
//! What a child may do (the kernel). What may be installed (`package`).

use core::fmt;
use core::pin::Pin;
use core::sync::atomic::AtomicBool;
use core::time::Duration;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use synapse_kernel::crew::{Finding, Package, Packages};
use synapse_kernel::engine::Engine;
use synapse_kernel::grant::Grant;
use synapse_primitives::Fault;
use synapse_primitives::disk;

use crate::load::{LIMIT, NotLoaded, load};
use crate::package::{Installed, Store};

/// Children that all agents of a run may have at once.
pub const CHILDREN: usize = 1024;

/// What a run knows by name.
pub struct Known<E: Engine> {
    engine: Arc<E>,
    state: PathBuf,
    /// The run's own package, where it is one that nobody installed.
    own: Option<(String, Package<E::Program>)>,
    programs: Arc<Mutex<BTreeMap<String, E::Program>>>,
    /// Ends what is being compiled.
    cancel: Arc<AtomicBool>,
}

impl<E: Engine> fmt::Debug for Known<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").field("state", &self.state).finish_non_exhaustive()
    }
}

impl<E: Engine> Known<E> {
    /// What is installed in this state folder, and perhaps one package more; `cancel` is
    /// set when the run is to end.
    #[must_use]
    pub fn new(
        engine: Arc<E>,
        state: PathBuf,
        own: Option<(String, Package<E::Program>)>,
        cancel: Arc<AtomicBool>,
    ) -> Self {
        Self { engine, state, own, programs: Arc::default(), cancel }
    }
}

impl<E: Engine<Program: 'static> + 'static> Packages<Arc<E>> for Known<E> {
    fn find<'a>(&'a self, name: &'a str) -> Finding<'a, E::Program> {
        Box::pin(async move {
            if let Some((_, own)) = self.own.as_ref().filter(|(own, _)| own == name) {
                return Ok(own.clone());
            }
            let (engine, programs) = (Arc::clone(&self.engine), Arc::clone(&self.programs));
            let (state, name) = (self.state.clone(), name.to_owned());
            let cancel = Arc::clone(&self.cancel);
            let work = move || {
                // A store that cannot be read has no packages to start.
                let store = Store::open(&state).map_err(|_| Fault::Io)?;
                let installed = store.get(&name).map_err(|_| Fault::Io)?;
                prepared(engine, &programs, &installed.ok_or(Fault::NotFound)?, &cancel)
            };
            tokio::task::spawn_blocking(work).await.unwrap_or(Err(Fault::Io))
        })
    }
}

fn prepared<E: Engine<Program: 'static> + 'static>(
    engine: Arc<E>,
    programs: &Mutex<BTreeMap<String, E::Program>>,
    installed: &Installed,
    cancel: &AtomicBool,
) -> Result<Package<E::Program>, Fault> {
    let digest = installed.package.digest().to_string();
    // Whoever panicked left a whole map.
    let known = || programs.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = known().get(&digest).cloned();
    let program = if let Some(program) = kept {
        program
    } else {
        let component = installed.package.component().to_vec();
        let (_, program) = load(engine, component, LIMIT, cancel).map_err(|why| match why {
            NotLoaded::Cancelled => Fault::Cancelled,
            _ => Fault::Unsupported,
        })?;
        known().insert(digest, program.clone());
        program
    };
    let bounds = Grant::parse(&installed.text).map_err(|_| Fault::Io)?;
    Ok(Package {
        program,
        bounds: Some(Arc::new(bounds)),
        texts: installed.package.soul().map(ToOwned::to_owned).into_iter().collect(),
        approval: Some(installed.approval()),
    })
}

/// Waits on the executor's timer.
#[derive(Clone, Copy, Debug)]
pub struct Timer;

impl disk::Timer for Timer {
    fn sleep<'a>(&'a self, ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(tokio::time::sleep(Duration::from_millis(ms)))
    }
}
