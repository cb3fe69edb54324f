//! A machine for the firmware: QEMU, its console, its end.
//!
//! # Invariants
//! - Nothing is waited for without a limit, and a machine ends with the value
//!   that stands for it.
//! - How a machine ended is known from its exit code; what it said is kept.
//!
//! # Not here
//! What an image is started with (`synapse_bundle`).

use core::error::Error;
use core::fmt;
use core::time::Duration;

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Instant;

use tempfile::NamedTempFile;

/// What runs a machine.
pub const QEMU: &str = "qemu-system-x86_64";
/// What QEMU ends with when the image ended as it was asked to.
pub const SUCCESS: i32 = 33;
/// When it could not begin its work.
pub const UNABLE: i32 = 35;
/// When it has a bug.
pub const PANIC: i32 = 37;
/// When the processor found a fault.
pub const FAULT: i32 = 39;

/// A board that QEMU knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// No PCI, no firmware of its own: starts in the blink of an eye.
    Microvm,
    /// A PC of today.
    Q35,
    /// A PC of the nineties.
    Pc,
}

impl Model {
    /// Every board.
    pub const ALL: [Self; 3] = [Self::Microvm, Self::Q35, Self::Pc];

    const fn name(self) -> &'static str {
        match self {
            // The clock chip is left out unless it is asked for.
            Self::Microvm => "microvm,rtc=on",
            Self::Q35 => "q35",
            Self::Pc => "pc",
        }
    }

    /// How it calls a device of the kind `virtio-KIND`.
    fn device(self, kind: &str) -> String {
        let bus = match self {
            Self::Microvm => "device",
            Self::Q35 | Self::Pc => "pci",
        };
        format!("virtio-{kind}-{bus}")
    }
}

/// How a bundle is handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// As a boot module.
    #[default]
    Module,
    /// As a file of QEMU's own, which needs no boot loader.
    File,
}

/// What runs a machine's instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Processor {
    /// QEMU, on any host.
    #[default]
    Emulated,
    /// The host's processor, by KVM; [`Plan::probe`] says whether it does.
    Kvm,
}

/// What a machine is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The image.
    pub image: PathBuf,
    /// Its board.
    pub model: Model,
    /// MiB of memory.
    pub memory: u32,
    /// Words for the image, `name=value` each.
    pub words: String,
    /// A disc with a boot loader and all that it starts. Without one, QEMU starts the image.
    pub disc: Option<PathBuf>,
    /// What it is started with; nothing if empty.
    pub bundle: Vec<u8>,
    /// How the bundle is handed over.
    pub carrier: Carrier,
    /// A file that is its disk; it has at least 1 MiB.
    pub disk: Option<PathBuf>,
    /// Whether it has a device that gives random bytes.
    pub has_random: bool,
    /// What runs its instructions.
    pub processor: Processor,
    /// More of QEMU's arguments.
    pub more: Vec<OsString>,
}

impl Plan {
    /// A machine of ordinary size, without a bundle.
    #[must_use]
    pub fn new(image: &Path) -> Self {
        Self {
            image: image.to_owned(),
            model: Model::Q35,
            memory: 64,
            words: String::new(),
            disc: None,
            bundle: Vec::new(),
            carrier: Carrier::default(),
            disk: None,
            has_random: false,
            processor: Processor::default(),
            more: Vec::new(),
        }
    }

    /// Whether the host's processor runs this image. That a host has KVM does not
    /// say so: a machine is booted, and has a few seconds to come to its end.
    #[must_use]
    pub fn probe(&self) -> bool {
        let words = String::from("drill=nothing");
        let probe = Self { processor: Processor::Kvm, words, ..Self::new(&self.image) };
        // What QEMU says to that is no news for whoever asked.
        let machine = probe.launch(Stdio::null());
        let ended = machine.ok().and_then(|machine| machine.end(PROBE).ok());
        ended.is_some_and(|(code, _)| code == UNABLE)
    }

    /// QEMU's command line, and the file in it that must live as long.
    ///
    /// # Errors
    /// The bundle could not be written to a temporary file.
    pub fn command(&self) -> io::Result<(Command, NamedTempFile)> {
        let mut file = NamedTempFile::new()?;
        file.write_all(&self.bundle)?;
        let mut qemu = Command::new(QEMU);
        qemu.args(["-M", self.model.name(), "-m", &self.memory.to_string()]);
        qemu.args(["-nodefaults", "-no-reboot", "-display", "none"]);
        qemu.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
        match &self.disc {
            Some(disc) => qemu.arg("-cdrom").arg(disc),
            None => qemu.arg("-kernel").arg(&self.image),
        };
        if !self.words.is_empty() {
            qemu.args(["-append", &self.words]);
        }
        match self.carrier {
            Carrier::Module if self.bundle.is_empty() => {}
            Carrier::Module => {
                qemu.arg("-initrd").arg(file.path());
            }
            Carrier::File => {
                qemu.arg("-fw_cfg").arg(with_file("name=opt/synapse/bundle,file=", file.path()));
            }
        }
        if self.model == Model::Microvm {
            // Its devices are those of the standard's first version unless this is said.
            qemu.args(["-global", "virtio-mmio.force-legacy=false"]);
        }
        if let Some(disk) = &self.disk {
            qemu.arg("-drive").arg(with_file("if=none,id=disk,format=raw,file=", disk));
            qemu.arg("-device").arg(format!("{},drive=disk", self.model.device("blk")));
        }
        if self.has_random {
            qemu.args(["-object", "rng-builtin,id=random"]);
            qemu.arg("-device").arg(format!("{},rng=random", self.model.device("rng")));
        }
        if self.processor == Processor::Kvm {
            qemu.args(["-accel", "kvm", "-cpu", "host"]);
        }
        qemu.args(&self.more);
        Ok((qemu, file))
    }

    /// Starts the machine, its console in the hands of this program.
    ///
    /// # Errors
    /// QEMU does not start.
    pub fn start(&self) -> io::Result<Machine> {
        self.launch(Stdio::inherit())
    }

    fn launch(&self, errors: Stdio) -> io::Result<Machine> {
        let (mut qemu, bundle) = self.command()?;
        qemu.args(["-serial", "stdio"]).stderr(errors);
        let mut child = qemu.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (sender, output) = mpsc::channel();
        let pipe = child.stdout.take();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            let Some(mut pipe) = pipe else { return };
            while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                let part = buffer.get(..length).unwrap_or_default().to_vec();
                if sender.send(part).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Ok(Machine { child, input, output, said: Vec::new(), seen: 0, _bundle: bundle })
    }
}

/// A machine that runs.
#[derive(Debug)]
pub struct Machine {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
    said: Vec<u8>,
    /// Bytes of what was said that were waited for already.
    seen: usize,
    _bundle: NamedTempFile,
}

impl Machine {
    /// Waits until the console says this, after what was waited for before, and
    /// gives everything up to its end.
    ///
    /// # Errors
    /// It is not said in time, or the machine ends before.
    pub fn expect(&mut self, text: &str, within: Duration) -> Result<String, Unmet> {
        let until = Instant::now() + within;
        // Where it may begin at the earliest.
        let mut from = self.seen;
        loop {
            let rest = self.said.get(from..).unwrap_or_default();
            if let Some(at) = find(rest, text.as_bytes()) {
                let end = from + at + text.len();
                let found = self.said.get(self.seen..end).unwrap_or_default();
                let found = String::from_utf8_lossy(found).into_owned();
                self.seen = end;
                return Ok(found);
            }
            from = self.said.len().saturating_sub(text.len()).max(from);
            match self.output.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(part) => self.said.extend_from_slice(&part),
                Err(_) => return Err(self.unmet(format!("`{text}`"))),
            }
        }
    }

    /// Types a line at the console.
    ///
    /// # Errors
    /// The machine has ended.
    pub fn enter(&mut self, line: &str) -> io::Result<()> {
        self.press(line.as_bytes())?;
        self.press(b"\r")
    }

    /// Types keys at the console.
    ///
    /// # Errors
    /// The machine has ended.
    pub fn press(&mut self, keys: &[u8]) -> io::Result<()> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(keys)?;
        input.flush()
    }

    /// Waits for the machine's end: its exit code, and all that it said.
    ///
    /// # Errors
    /// It does not end in time.
    pub fn end(mut self, within: Duration) -> Result<(i32, String), Unmet> {
        let until = Instant::now() + within;
        loop {
            match self.output.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(part) => self.said.extend_from_slice(&part),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => return Err(self.unmet("its end".into())),
            }
        }
        let status = self.child.wait().ok().and_then(|status: ExitStatus| status.code());
        let said = String::from_utf8_lossy(&self.said).into_owned();
        Ok((status.unwrap_or(-1), said))
    }

    /// Ends the machine as a power cut would.
    pub fn kill(self) {
        drop(self);
    }

    fn unmet(&self, wanted: String) -> Unmet {
        Unmet { wanted, said: String::from_utf8_lossy(&self.said).into_owned() }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Either fails only if it has ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// An option of QEMU's that ends in a path; a comma in it is written twice.
fn with_file(option: &str, path: &Path) -> OsString {
    let mut text = OsString::from(option);
    for (place, part) in path.as_os_str().as_encoded_bytes().split(|byte| *byte == b',').enumerate()
    {
        text.push(if place == 0 { "" } else { ",," });
        text.push(OsStr::from_bytes(part));
    }
    text
}

/// How long a probe may take.
const PROBE: Duration = Duration::from_secs(5);

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len().max(1)).position(|window| window == wanted)
}

/// What a machine did not do in time, or before it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// What was waited for.
    pub wanted: String,
    /// All that the machine said instead.
    pub said: String,
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the machine did not reach {} in time; it said:\n{}", self.wanted, self.said)
    }
}

impl Error for Unmet {}
