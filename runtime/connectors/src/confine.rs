//! The walls around a program: no descriptors, no files, no network but what is named
//!
//! A program cannot be trusted to confine itself, and nothing safe runs between a fork
//! and an exec. So this process starts itself again, raises the walls around that one,
//! and lets it become the program.
//!
//! # Invariants
//! - All walls stand before the program's first instruction; one that cannot be
//!   raised ends the process, with a status that says which.
//!
//! # Not here
//! What a program is let have (its manifest); how long a call may take (`server`).

use core::convert::Infallible;
use core::fmt;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{Resource, Rlimit, Signal};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use serde::{Deserialize, Serialize};
use synapse_kernel::manifest::Start;
use synapse_secrets::Given;
use zeroize::Zeroizing;

use crate::exec::Stage;

/// How this process is started again: a program, and its arguments that lead to
/// [`enter`].
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The program.
    pub program: PathBuf,
    /// What comes before the walls.
    pub arguments: Vec<String>,
    /// What a program's variables may be filled with.
    pub secrets: Arc<Given>,
}

/// What a program is let have.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Walls {
    pub(crate) read: Vec<String>,
    pub(crate) write: Vec<String>,
    pub(crate) network: bool,
    pub(crate) memory: u64,
    /// Seconds of computing of one process; `None` for one that serves.
    pub(crate) computing: Option<u64>,
}

/// A wall that could not be raised, by the status that the process ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Wall {
    /// The walls that were asked for cannot be read.
    Request = 120,
    /// Inherited descriptors could not be closed.
    Descriptors = 121,
    /// Limits on memory and files could not be set.
    Limits = 122,
    /// The file system could not be closed off.
    Files = 123,
    /// A folder that it may use is not there.
    Folder = 124,
    /// System calls could not be filtered.
    Calls = 125,
    /// The program could not be started behind them.
    Program = 126,
}

impl Wall {
    const ALL: [Self; 7] = [
        Self::Request,
        Self::Descriptors,
        Self::Limits,
        Self::Files,
        Self::Folder,
        Self::Calls,
        Self::Program,
    ];

    /// The wall that a process ended by.
    #[must_use]
    pub fn of(status: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|wall| i32::from(*wall as u8) == status)
    }
}

impl fmt::Display for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request => "its confinement cannot be read; this is a mistake of Synapse's own",
            Self::Descriptors => "inherited descriptors cannot be closed; is /proc mounted?",
            Self::Limits => "its limits cannot be set; the shell's own are lower: raise them",
            Self::Files => {
                "the file system cannot be closed off; this needs Linux 6.7 with Landlock enabled"
            }
            Self::Folder => "a folder of its `read` or `write` is not there; make it or remove it",
            Self::Calls => "system calls cannot be filtered; this needs a kernel with seccomp",
            Self::Program => "the program cannot be started; is it there, and may it be run?",
        })
    }
}

/// Starts a program behind its walls, with pipes for its input and output.
///
/// # Errors
/// What the system answers.
pub fn start(
    start: &Start,
    launcher: &Launcher,
    secrets: &[(String, Zeroizing<String>)],
) -> io::Result<Child> {
    let walls = Walls {
        read: start.read.clone(),
        write: start.write.clone(),
        network: start.network,
        memory: start.memory,
        computing: None,
    };
    let inherited = start.environment.iter();
    let environment = inherited.filter_map(|name| Some((name, std::env::var_os(name)?)));
    Command::new(&launcher.program)
        .args(&launcher.arguments)
        .arg(serde_json::to_string(&walls)?)
        .args(&start.command)
        .env_clear()
        .envs(environment)
        .envs(secrets.iter().map(|(name, value)| (name, value.as_str())))
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

/// Raises the walls around this process and becomes the program: the first argument
/// says which walls, the rest is the command. Comes back only where that failed, or
/// what ran a line is done, with the status to end with.
pub fn enter(arguments: impl Iterator<Item = String>) -> u8 {
    let mut arguments = arguments.peekable();
    if let Some(stage) = arguments.peek().and_then(|word| Stage::of(word)) {
        return stage.enter(arguments.skip(1));
    }
    match raise(arguments) {
        Err(wall) => wall as u8,
        Ok(never) => match never {},
    }
}

fn raise(mut arguments: impl Iterator<Item = String>) -> Result<Infallible, Wall> {
    let walls = arguments.next().and_then(|walls| serde_json::from_str::<Walls>(&walls).ok());
    let walls = walls.ok_or(Wall::Request)?;
    let program = PathBuf::from(arguments.next().ok_or(Wall::Request)?);
    close_descriptors().map_err(|_| Wall::Descriptors)?;
    limit(&walls).map_err(|_| Wall::Limits)?;
    close_files(&walls, &program)?;
    filter(walls.network).map_err(|_| Wall::Calls)?;
    // Comes back with an error only.
    let _ = Command::new(&program).args(arguments).exec();
    Err(Wall::Program)
}

/// Closes all but input, output and errors.
pub(crate) fn close_descriptors() -> io::Result<()> {
    let mut open: Vec<i32> = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        open.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    for number in open.into_iter().filter(|number| *number > 2) {
        // The descriptor of the listing itself is gone by now.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}

pub(crate) fn limit(walls: &Walls) -> rustix::io::Result<()> {
    let limits = [
        (Resource::Core, 0),
        (Resource::Data, walls.memory),
        (Resource::Nofile, 1024),
        (Resource::Nproc, 4096),
        (Resource::Fsize, 1 << 32),
    ];
    let computing = walls.computing.map(|seconds| (Resource::Cpu, seconds));
    for (resource, most) in limits.into_iter().chain(computing) {
        let now = rustix::process::getrlimit(resource);
        let most = now.maximum.map_or(most, |maximum| maximum.min(most));
        let both = Rlimit { current: Some(most), maximum: Some(most) };
        rustix::process::setrlimit(resource, both)?;
    }
    // Who started it may be killed before it can end it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
}

/// What every program needs to begin.
const SYSTEM: [&str; 10] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/etc/ssl",
    "/dev/urandom", "/dev/zero",
];
/// What names and certificates are looked up by.
const NETWORK: [&str; 4] =
    ["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf"];

pub(crate) fn close_files(walls: &Walls, program: &Path) -> Result<(), Wall> {
    for folder in walls.read.iter().chain(&walls.write) {
        PathFd::new(folder).map_err(|_| Wall::Folder)?;
    }
    let (read, all) = (AccessFs::from_read(ABI::V4), AccessFs::from_all(ABI::V4));
    // Whoever may make a device may open the one that it names.
    let change = all & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let own = walls.read.iter().map(Path::new).chain([program]);
    let network = NETWORK.iter().filter(|_| walls.network).map(Path::new);
    let readable: Vec<&Path> = SYSTEM.iter().map(Path::new).chain(network).chain(own).collect();
    let writable = walls.write.iter().map(Path::new).chain([Path::new("/dev/null")]);
    let raise = || {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(all)?;
        if !walls.network {
            rules = rules.handle_access(AccessNet::from_all(ABI::V4))?;
        }
        rules
            .set_compatibility(CompatLevel::BestEffort)
            .scope(Scope::from_all(ABI::V6))?
            .create()?
            .add_rules(path_beneath_rules(&readable, read))?
            .add_rules(path_beneath_rules(writable, change))?
            .restrict_self()
    };
    match raise() {
        Ok(status) if status.ruleset != RulesetStatus::NotEnforced => Ok(()),
        Ok(_) | Err(_) => Err(Wall::Files),
    }
}

/// Calls that reach past the walls, or that only what means harm makes.
const DENIED: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fsconfig,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_open_by_handle_at,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_acct,
    // The owners of files outside of the walls, and marks on them.
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    // What outlives a program, where no wall stands.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_timedreceive,
    libc::SYS_mq_notify,
    libc::SYS_mq_getsetattr,
    // Other processes' memory.
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    SETXATTRAT,
    REMOVEXATTRAT,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
];

/// Of Linux 6.13, by one number on every machine.
const SETXATTRAT: libc::c_long = 463;
const REMOVEXATTRAT: libc::c_long = 466;

/// The same calls by the numbers of the x32 interface.
const X32: libc::c_long = 0x4000_0000;

pub(crate) fn filter(network: bool) -> Result<(), seccompiler::Error> {
    let sockets = (!network).then_some(libc::SYS_socket);
    let denied = DENIED.iter().copied().chain(sockets).flat_map(|call| [call, call | X32]);
    let mut rules: BTreeMap<i64, _> = denied.map(|call| (call, Vec::new())).collect();
    // Its own limits alone: another process's are that one's means to end this one.
    let other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
    for call in [libc::SYS_prlimit64, libc::SYS_prlimit64 | X32] {
        rules.insert(call, vec![SeccompRule::new(vec![other.clone()])?]);
    }
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into()?;
    let program = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?;
    let program: BpfProgram = program.try_into()?;
    apply_filter(&program)
}
