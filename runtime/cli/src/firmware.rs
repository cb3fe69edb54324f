//! `synapse firmware`: the same agents on a machine without an operating system
//!
//! # Not here
//! Building the image itself, which takes this project's source (`cargo xtask
//! firmware`). The bundle's format (`synapse_bundle`), QEMU (`synapse_machine`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use synapse_bundle::{File, Writer};
use synapse_host::package::{Package, Source};
use synapse_host::render;
use synapse_host::run::MountOption;
use synapse_kernel::admit::admit;
use synapse_machine::{Model, Plan, Processor, QEMU, SUCCESS};

use crate::{mount, stock};

/// Bundles agents with files, and starts a machine with them.
#[derive(clap::Args)]
pub(crate) struct Firmware {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Write a bundle: what an image is started with, as its initial RAM disk.
    ///
    /// QEMU can hand it over by itself: `-fw_cfg name=opt/synapse/bundle,file=FILE`.
    ///
    /// Exit codes: 0 written, 1 failed, 2 the command line is wrong.
    Build {
        #[command(flatten)]
        contents: Contents,
        /// The bundle to write.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Start a machine in this terminal; Ctrl-A x ends it at once.
    ///
    /// Exit codes: 0 powered off, 1 failed, 2 the command line is wrong.
    Run {
        #[command(flatten)]
        contents: Contents,
        /// The image, as `cargo xtask firmware` builds it.
        #[arg(long, value_name = "FILE")]
        image: PathBuf,
        /// MiB of memory; 16 is the least.
        #[arg(long, default_value_t = 64)]
        memory: u32,
        /// A file that is the machine's disk, made if it is not there: what
        /// happens in the machine is kept on it. Without one it is forgotten.
        #[arg(long, value_name = "FILE")]
        disk: Option<PathBuf>,
        /// MiB of a disk that is made; a quarter of it holds files and logs.
        #[arg(long, value_name = "MIB", default_value_t = 64, requires = "disk",
              value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
        disk_size: u64,
        /// Let the host's processor run it, if a trial shows that it can.
        #[arg(long)]
        kvm: bool,
    },
}

/// What goes into a bundle.
#[derive(clap::Args)]
struct Contents {
    /// A package's file, or the name of one that comes with Synapse, to be installed in
    /// the machine; or an agent that needs no leave: a package's folder with
    /// `<name>.wasm` and `grant.toml`, or a component and its grant.
    #[arg(value_name = "PACKAGE|FOLDER|COMPONENT=GRANT")]
    agents: Vec<PathBuf>,

    /// A folder whose files are copied into the machine, and where.
    #[arg(long = "dir", value_name = "HOST[=/GUEST]", value_parser = mount::parse)]
    dirs: Vec<MountOption>,

    /// A line that is typed at the console when the image has started; may be
    /// given more than once.
    #[arg(long = "line", value_name = "LINE")]
    lines: Vec<String>,
}

impl Firmware {
    /// Bundles, and starts a machine if that was asked for.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        match self.action {
            Action::Build { contents, output } => {
                let bundle = contents.bundle()?;
                fs::write(&output, &bundle).map_err(|why| cannot("write", &output, &why))?;
                tell!("{}: {} bytes", shown(&output), bundle.len());
                Ok(ExitCode::SUCCESS)
            }
            Action::Run { contents, image, memory, disk, disk_size, kvm } => {
                fs::metadata(&image).map_err(|why| cannot("read", &image, &why))?;
                let bundle = contents.bundle()?;
                if let Some(disk) = &disk {
                    provide(disk, disk_size)?;
                }
                let plan = Plan { memory, bundle, disk, has_random: true, ..Plan::new(&image) };
                let processor = match kvm {
                    true if plan.probe() => Processor::Kvm,
                    true => {
                        tell!("KVM does not run the image here; it is emulated");
                        Processor::Emulated
                    }
                    false => Processor::Emulated,
                };
                start(&Plan { model: Model::Q35, processor, ..plan })
            }
        }
    }
}

/// Makes a disk of zeros, of so many MiB, where there is none.
fn provide(disk: &Path, mib: u64) -> Result<(), String> {
    let made = match fs::File::create_new(disk) {
        Ok(file) => file.set_len(mib << 20),
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(why) => Err(why),
    };
    made.map_err(|why| cannot("make the disk", disk, &why))
}

fn start(plan: &Plan) -> Result<ExitCode, String> {
    // The bundle's file lives until the machine has ended.
    let (mut qemu, _bundle) =
        plan.command().map_err(|why| format!("the bundle cannot be kept: {why}; is /tmp full?"))?;
    // With all that the emulator can do, a source of randomness among it.
    qemu.args(["-serial", "mon:stdio"]);
    if plan.processor == Processor::Emulated {
        qemu.args(["-cpu", "max"]);
    }
    let status = qemu.status().map_err(|why| {
        format!("`{QEMU}` did not start: {why}; install it: apt-get install qemu-system-x86")
    })?;
    match status.code() {
        // 0: it was ended from QEMU's own keyboard.
        Some(SUCCESS | 0) => Ok(ExitCode::SUCCESS),
        _ => Err(format!("the machine ended badly ({status}); its reason is above")),
    }
}

impl Contents {
    fn bundle(&self) -> Result<Vec<u8>, String> {
        let mut writer = Writer::default();
        for agent in &self.agents {
            add_agent(&mut writer, agent)?;
        }
        for dir in &self.dirs {
            if dir.read_only {
                return Err("a machine gets copies, so `:ro` says nothing; leave it out".to_owned());
            }
            add_folder(&mut writer, &dir.host, &format!("files{}", dir.guest))?;
        }
        if !self.lines.is_empty() {
            add(&mut writer, "start", self.lines.join("\n").as_bytes())?;
        }
        Ok(writer.finish())
    }
}

/// Adds a package's file, by the name of what is in it.
fn add_package(writer: &mut Writer, file: &Path) -> Result<(), String> {
    let bytes = read(file)?;
    let package = Package::read(&bytes).map_err(|why| format!("{}: {why}", shown(file)))?;
    let admitted = admit(package.component()).map_err(|why| format!("{}: {why}", shown(file)))?;
    admitted.boards().firmware.map_err(|why| format!("{}: {why}", shown(file)))?;
    add(writer, &format!("packages/{}.synapse", package.manifest.name), &bytes)
}

fn add_agent(writer: &mut Writer, agent: &Path) -> Result<(), String> {
    if let Source::Path(file) = stock::found(Source::Path(agent.to_owned()))
        && file.is_file()
    {
        return add_package(writer, &file);
    }
    let text = agent.to_string_lossy();
    let (component, grant) = if let Some((component, grant)) = text.split_once('=') {
        (PathBuf::from(component), PathBuf::from(grant))
    } else {
        let folder =
            fs::canonicalize(agent).map_err(|why| cannot("open the package", agent, &why))?;
        let name = PathBuf::from(folder.file_name().unwrap_or_default());
        (folder.join(name.with_extension("wasm")), folder.join("grant.toml"))
    };
    let bytes = read(&component)?;
    let admitted = admit(&bytes).map_err(|why| format!("{}: {why}", shown(&component)))?;
    admitted.boards().firmware.map_err(|why| format!("{}: {why}", shown(&component)))?;
    let name = component.file_stem().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| format!("{}: its name is no text", shown(&component)))?;
    add(writer, &format!("packages/{name}/{name}.wasm"), &bytes)?;
    add(writer, &format!("packages/{name}/grant.toml"), &read(&grant)?)
}

/// Adds the regular files below a folder, in the order of their names.
fn add_folder(writer: &mut Writer, folder: &Path, path: &str) -> Result<(), String> {
    let failed = |why: io::Error| cannot("read the folder", folder, &why);
    let entries = fs::read_dir(folder).map_err(failed)?;
    let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (own, kind) = (entry.path(), entry.file_type().map_err(failed)?);
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| format!("{}: its name is no text", shown(&own)))?;
        let path = format!("{path}/{name}");
        if kind.is_dir() {
            add_folder(writer, &own, &path)?;
        } else if kind.is_file() {
            add(writer, &path, &read(&own)?)?;
        } else {
            tell!("{}: left out, for it is neither a file nor a folder", shown(&own));
        }
    }
    Ok(())
}

fn add(writer: &mut Writer, path: &str, bytes: &[u8]) -> Result<(), String> {
    let added = writer.add(File { path, bytes });
    if added { Ok(()) } else { Err(format!("{path} has 4 GiB or more; a bundle holds less")) }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|why| cannot("read", path, &why))
}

fn cannot(what: &str, path: &Path, why: &io::Error) -> String {
    format!("cannot {what} {}: {why}; check the path and its permissions", shown(path))
}

fn shown(path: &Path) -> String {
    render::escape(path.as_os_str().as_encoded_bytes())
}

#[cfg(test)]
mod tests {
    use super::{Contents, provide};
    use crate::mount;
    use std::fs;

    #[test]
    fn a_disk_is_made_once_and_then_kept() {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().join("disk");
        provide(&disk, 2).unwrap();
        assert_eq!(fs::metadata(&disk).unwrap().len(), 2 << 20);
        fs::write(&disk, "kept").unwrap();
        provide(&disk, 2).unwrap();
        assert_eq!(fs::read(&disk).unwrap(), b"kept");
        let why = provide(&dir.path().join("none/disk"), 2).unwrap_err();
        assert!(why.contains("cannot make the disk"), "{why}");
    }

    #[test]
    fn bundle_holds_folders_and_lines_and_tells_what_it_cannot() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("deep")).unwrap();
        fs::write(dir.path().join("deep/b.md"), "b").unwrap();
        fs::write(dir.path().join("a.md"), "a").unwrap();
        let host = dir.path().to_str().unwrap();
        let contents = |agents: &[&str], dir: &str| Contents {
            agents: agents.iter().map(Into::into).collect(),
            dirs: vec![mount::parse(dir).unwrap()],
            lines: vec!["help".to_owned(), "poweroff".to_owned()],
        };
        let bundle = contents(&[], &format!("{host}=/data")).bundle().unwrap();
        let files: Vec<_> = synapse_bundle::read(&bundle)
            .map(|file| file.unwrap())
            .map(|f| (f.path, f.bytes))
            .collect();
        assert_eq!(
            files,
            [
                ("files/data/a.md", &b"a"[..]),
                ("files/data/deep/b.md", b"b"),
                ("start", b"help\npoweroff")
            ]
        );
        for (agents, dir, told) in [
            (&[][..], format!("{host}=/data:ro"), "`:ro` says nothing"),
            (&[], format!("{host}/none"), "cannot read the folder"),
            (&[&*format!("{host}/a.md=none")], host.to_owned(), "a.md"),
            (&["no-such-folder"], host.to_owned(), "cannot open the package"),
        ] {
            let why = contents(agents, &dir).bundle().unwrap_err();
            assert!(why.contains(told), "{why}");
        }
    }
}
