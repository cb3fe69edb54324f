//! Packages in a registry that others make: filled, pushed to, killed, closed, and made to lie.

use core::net::Ipv4Addr;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use synapse_host::package::Digest;

use crate::guest::guest;
use crate::packages::{changed, digest, folder, shown, text};
use crate::secret::set;
use crate::{command, err, out, synapse};

const ASKS: [&str; 2] = ["primitive = \"fs_read\"", "path = \"/data/**\"\nrights = [\"read\"]"];

/// The registry of Debian's package, on this machine, until it is dropped.
struct Registry {
    folder: PathBuf,
    port: u16,
    running: Child,
}

impl Registry {
    /// An empty one that asks nobody who asks, or those whom these lines say.
    fn start(root: &Path, auth: &str) -> Self {
        let folder = root.join("registry");
        fs::create_dir(&folder).unwrap();
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let storage = folder.join("storage");
        let configuration = format!(
            "version: 0.1\nlog:\n  level: error\n  accesslog:\n    disabled: true\nstorage:\n  \
             filesystem:\n    rootdirectory: {}\nhttp:\n  addr: 127.0.0.1:{port}\n{auth}",
            storage.display()
        );
        fs::write(folder.join("config.yml"), configuration).unwrap();
        let running = Self::run(&folder, port);
        Self { folder, port, running }
    }

    fn run(folder: &Path, port: u16) -> Child {
        let log = fs::File::create(folder.join("log")).unwrap();
        let mut registry = Command::new("docker-registry");
        registry.arg("serve").arg(folder.join("config.yml")).stdin(Stdio::null());
        let child = registry.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let log = fs::read_to_string(folder.join("log")).unwrap();
            assert!(Instant::now() < until, "the registry does not listen\n{log}");
            thread::sleep(Duration::from_millis(20));
        }
        child
    }

    /// Ends it as a power cut does.
    fn kill(&mut self) {
        self.running.kill().unwrap();
        self.running.wait().unwrap();
    }

    fn start_again(&mut self) {
        self.running = Self::run(&self.folder, self.port);
    }

    /// Where it keeps the bytes with this digest.
    fn kept(&self, digest: &str) -> PathBuf {
        let digits = digest.strip_prefix("sha256:").unwrap();
        let blobs = self.folder.join("storage/docker/registry/v2/blobs/sha256");
        blobs.join(digits.get(..2).unwrap()).join(digits).join("data")
    }

    fn at(&self, name: &str) -> String {
        format!("oci://127.0.0.1:{}/acme/reader{name}", self.port)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.running.kill();
        let _ = self.running.wait();
    }
}

/// A package's file of this version, its folder changed so.
fn built(root: &Path, version: &str, change: &[(&str, &str)]) -> PathBuf {
    let source = folder(root, "src", &guest(&[]), &ASKS);
    for (from, to) in
        [&[("version = \"1.0.0\"", &*format!("version = \"{version}\""))], change].concat()
    {
        changed(&source, from, to);
    }
    packed(root, &source, version)
}

fn packed(root: &Path, source: &Path, name: &str) -> PathBuf {
    let file = root.join(format!("reader-{name}.synapse"));
    let made = done(root, &["package", "build", text(source), "-o", text(&file)]);
    assert!(made.contains("sha256:"), "{made}");
    file
}

/// What a command printed that did what it should.
fn done(root: &Path, arguments: &[&str]) -> String {
    let ran = synapse(&root.join("state"), arguments);
    assert!(ran.status.success(), "{arguments:?}: {}", err(&ran));
    out(&ran)
}

/// What a command said that did not.
fn told(root: &Path, arguments: &[&str]) -> String {
    let ran = synapse(&root.join("state"), arguments);
    assert_eq!(ran.status.code(), Some(1), "{arguments:?}: {}", out(&ran));
    err(&ran)
}

/// Installs or upgrades to what is there, with all that it asks for.
fn agreed(root: &Path, verb: &str, source: &str, file: &Path) -> Output {
    let grant = root.join("grant.toml");
    fs::write(&grant, done(root, &["package", "grant", text(file)])).unwrap();
    let digest = digest(root, file);
    let state = root.join("state");
    synapse(&state, &[verb, source, "--accept", &digest, "--grant", text(&grant)])
}

/// What `skopeo` printed; it takes any image, and no TLS.
fn skopeo(arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new("skopeo");
    let ran = command.arg("--insecure-policy").args(arguments).output().unwrap();
    assert!(ran.status.success(), "{arguments:?}: {}", err(&ran));
    ran.stdout
}

/// Whether nothing is installed, and nothing is kept of what came under this digest.
fn is_refused(root: &Path, digest: &str) -> bool {
    let digits = digest.strip_prefix("sha256:").unwrap();
    let came = root.join("state/synapse/packages/.downloads").join(digits);
    !came.exists() && done(root, &["list"]).is_empty()
}

#[test]
#[ignore = "needs docker-registry and skopeo: cargo xtask registry"]
fn what_skopeo_copies_is_installed_by_its_tag_or_its_digest() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let registry = Registry::start(root, "");
    let file = built(root, "1.0.0", &[]);
    let own = digest(root, &file);
    let docker = registry.at(":1.0.0").replace("oci://", "docker://");
    skopeo(&["copy", "--dest-tls-verify=false", &format!("oci-archive:{}", text(&file)), &docker]);

    let (tag, pin) = (registry.at(":1.0.0"), registry.at(&format!("@{own}")));
    assert!(done(root, &["package", "inspect", &tag]).contains(&own));
    let other = format!("sha256:{}", "0".repeat(64));
    let none = told(root, &["package", "inspect", &registry.at(&format!("@{other}"))]);
    assert!(none.contains("the registry has no `sha256:0000"), "{none}");
    let none = told(root, &["package", "inspect", &registry.at(":2.0.0")]);
    assert!(none.contains("the registry has no `2.0.0`"), "{none}");
    for source in [&tag, &pin] {
        let installed = agreed(root, "install", source, &file);
        assert!(installed.status.success(), "{}", err(&installed));
        assert_eq!(
            (&shown(root)["digest"], &shown(root)["source"]),
            (&own.as_str().into(), &source.as_str().into())
        );
        done(root, &["remove", "reader"]);
        let downloads = fs::read_dir(root.join("state/synapse/packages/.downloads"));
        assert_eq!(downloads.unwrap().count(), 0);
    }
}

#[test]
#[ignore = "needs docker-registry and skopeo: cargo xtask registry"]
fn what_is_pushed_is_upgraded_to_as_it_may_be() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let registry = Registry::start(root, "");
    let latest = registry.at(":latest");
    let (key, other_key) = (root.join("key"), root.join("other"));
    let public = done(root, &["package", "keygen", text(&key)]);
    done(root, &["package", "keygen", text(&other_key)]);
    let push = |version: &str, change: &[(&str, &str)]| {
        let file = built(root, version, change);
        done(root, &["package", "sign", text(&file), "--key", text(&key)]);
        let named = done(root, &["package", "push", text(&file), &latest]);
        assert_eq!(named.trim(), format!("{latest}@{}", digest(root, &file)));
        file
    };
    let first = push("1.0.0", &[]);
    let own = digest(root, &first);
    // Others find it too, as it is.
    let docker = latest.replace("oci://", "docker://");
    let raw = skopeo(&["inspect", "--raw", "--tls-verify=false", &docker]);
    assert_eq!(Digest::of(&raw).to_string(), own);
    let copy = root.join("copy.tar");
    skopeo(&["copy", "--src-tls-verify=false", &docker, &format!("oci-archive:{}", text(&copy))]);
    assert!(
        done(root, &["package", "inspect", &latest]).contains(&format!("by {}", public.trim()))
    );

    let installed = agreed(root, "install", &latest, &first);
    assert!(installed.status.success(), "{}", err(&installed));
    push("1.1.0", &[("/data/**", "/data/notes/**")]);
    let quiet = synapse(&root.join("state"), &["upgrade", "reader"]);
    assert!(quiet.status.success(), "{}", err(&quiet));
    assert!(err(&quiet).contains("no more than you agreed to"), "{}", err(&quiet));
    let before = shown(root);
    assert!(before["grant"].as_str().unwrap().contains("/data/notes/**"), "{before}");

    let wider = push("1.2.0", &[("rights = [\"read\"]", "rights = [\"read\", \"write\"]")]);
    let asked = told(root, &["upgrade", "reader"]);
    assert!(asked.contains("what nobody agreed to"), "{asked}");
    assert_eq!(shown(root), before);
    let installed = agreed(root, "upgrade", "reader", &wider);
    assert!(installed.status.success(), "{}", err(&installed));
    assert_eq!(shown(root)["version"], "1.2.0");

    push("1.1.0", &[("/data/**", "/data/notes/**")]);
    let older = told(root, &["upgrade", "reader"]);
    assert!(older.contains("older") && older.contains("--allow-downgrade"), "{older}");
    assert_eq!(shown(root)["version"], "1.2.0");

    // What is there is not sent again, and nobody signs it a second time.
    let again = synapse(&root.join("state"), &["package", "push", text(&first), &latest]);
    assert!(again.status.success() && err(&again).is_empty(), "{}", err(&again));
    done(root, &["package", "sign", text(&first), "--key", text(&other_key)]);
    let signed = told(root, &["package", "push", text(&first), &latest]);
    assert!(signed.contains("another signature"), "{signed}");
    let other = told(root, &["package", "push", text(&wider), &format!("{latest}@{own}")]);
    assert!(other.contains("this package is"), "{other}");
}

#[test]
#[ignore = "needs docker-registry and skopeo: cargo xtask registry"]
fn a_registry_that_is_killed_in_a_layer_is_gone_on_with() {
    const LAYER: usize = 24 << 20;
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let mut registry = Registry::start(root, "");
    // A section of a component that means nothing, and is large.
    let mut agent = guest(&[]);
    let padded = [&b"\x03pad"[..], &vec![7; LAYER]].concat();
    agent.push(0);
    let mut left = padded.len();
    while left > 0 {
        let more = if left > 0x7f { 0x80 } else { 0 };
        agent.push(u8::try_from(left & 0x7f).unwrap() | more);
        left >>= 7;
    }
    agent.extend_from_slice(&padded);
    let file = packed(root, &folder(root, "large", &agent, &ASKS), "large");
    let pushed =
        synapse(&root.join("state"), &["package", "push", text(&file), &registry.at(":1")]);
    assert!(pushed.status.success(), "{}", err(&pushed));
    assert!(err(&pushed).contains("25.1 MB of 25.1 MB"), "{}", err(&pushed));

    let line = Line::to(registry.port, 8 << 20);
    let source = format!("oci://127.0.0.1:{}/acme/reader:1", line.port);
    let own = digest(root, &file);
    let grant = root.join("grant.toml");
    fs::write(&grant, done(root, &["package", "grant", text(&file)])).unwrap();
    let install = ["install", &source, "--accept", &own, "--grant", text(&grant)];
    let state = root.join("state");
    let child = command(&state, &install).stderr(Stdio::piped()).stdout(Stdio::null()).spawn();
    let kept = || {
        let files = fs::read_dir(state.join("synapse/packages/.downloads")).into_iter().flatten();
        files.map(|file| file.unwrap().metadata().unwrap().len()).max().unwrap_or_default()
    };
    let until = Instant::now() + Duration::from_mins(1);
    while kept() < 4 << 20 {
        assert!(Instant::now() < until, "{} bytes came", kept());
        thread::sleep(Duration::from_millis(10));
    }
    registry.kill();
    line.open();
    let died = child.unwrap().wait_with_output().unwrap();
    assert_eq!(died.status.code(), Some(1));
    assert!(err(&died).contains("the connection ended"), "{}", err(&died));
    assert_eq!(done(root, &["list"]), "");
    let came = kept();
    assert!((4 << 20..LAYER as u64).contains(&came), "{came}");
    let none = told(root, &install);
    assert!(none.contains("the connection ended") && kept() == came, "{none}");

    registry.start_again();
    let before = line.passed.load(Ordering::Relaxed);
    let installed = synapse(&state, &install);
    assert!(installed.status.success(), "{}", err(&installed));
    assert!(err(&installed).contains("going on with"), "{}", err(&installed));
    let rest = (line.passed.load(Ordering::Relaxed) - before) as u64;
    assert!(rest < LAYER as u64 - came + (1 << 20), "{rest} bytes came after {came}");
    assert_eq!(shown(root)["digest"], own);
}

/// A line to a port, on which no more than so many bytes come back until it is opened.
struct Line {
    port: u16,
    passed: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Line {
    fn to(port: u16, most: usize) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let own = listener.local_addr().unwrap().port();
        let passed = Arc::<AtomicUsize>::default();
        let most = Arc::new(AtomicUsize::new(most));
        let counts = (Arc::clone(&passed), Arc::clone(&most));
        thread::spawn(move || {
            for near in listener.incoming() {
                let mut near = near.unwrap();
                // Where nobody listens the line is dead.
                let Ok(mut far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
                let (mut asked, mut there) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                let (passed, most) = (Arc::clone(&counts.0), Arc::clone(&counts.1));
                thread::spawn(move || std::io::copy(&mut asked, &mut there));
                thread::spawn(move || {
                    let mut bytes = [0; 16 << 10];
                    while let Ok(length @ 1..) = far.read(&mut bytes) {
                        while passed.load(Ordering::Relaxed) > most.load(Ordering::Relaxed) {
                            thread::sleep(Duration::from_millis(5));
                        }
                        passed.fetch_add(length, Ordering::Relaxed);
                        if near.write_all(&bytes[..length]).is_err() {
                            break;
                        }
                    }
                    let _ = near.shutdown(Shutdown::Both);
                });
            }
        });
        Self { port: own, passed, most }
    }

    fn open(&self) {
        self.most.store(usize::MAX, Ordering::Relaxed);
    }
}

#[test]
#[ignore = "needs docker-registry and skopeo: cargo xtask registry"]
fn other_bytes_in_its_storage_are_not_installed() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let registry = Registry::start(root, "");
    let file = built(root, "1.0.0", &[]);
    let own = digest(root, &file);
    done(root, &["package", "push", text(&file), &registry.at(":1")]);
    let image = fs::read(registry.kept(&own)).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&image).unwrap();
    let of = |part: &serde_json::Value| part["digest"].as_str().unwrap().to_owned();
    let parts = [of(&manifest["config"]), of(&manifest["layers"][0]), own.clone()];
    let pinned = registry.at(&format!("@{own}"));
    for part in &parts {
        let path = registry.kept(part);
        let good = fs::read(&path).unwrap();
        let mut other = good.clone();
        let last = other.len() - 3;
        other[last] ^= 1;
        fs::write(&path, other).unwrap();
        let asked = agreed(root, "install", &pinned, &file);
        assert_eq!(asked.status.code(), Some(1), "{part}: {}", err(&asked));
        assert!(
            err(&asked).contains("not the one that you named") || *part == own,
            "{}",
            err(&asked)
        );
        assert!(is_refused(root, part), "{part}");
        fs::write(&path, good).unwrap();
    }
    // A manifest of the same registry under the digest that was pinned.
    let other = built(root, "1.0.1", &[]);
    done(root, &["package", "push", text(&other), &registry.at(":2")]);
    fs::copy(registry.kept(&digest(root, &other)), registry.kept(&own)).unwrap();
    let asked = agreed(root, "install", &pinned, &file);
    assert_eq!(asked.status.code(), Some(1), "{}", out(&asked));
    assert!(is_refused(root, &own));
    fs::write(registry.kept(&own), image).unwrap();
    let installed = agreed(root, "install", &pinned, &file);
    assert!(installed.status.success(), "{}", err(&installed));
}

#[test]
#[ignore = "needs docker-registry and skopeo: cargo xtask registry"]
fn a_password_opens_a_registry_and_is_found_nowhere() {
    // What bcrypt makes of the password, by the user's name.
    const USERS: &str = "publisher:$2y$05$abcdefghijklmnopqrstuuD3mHdCr44zlIZ.VZCaYRpfQhXMYnEo.\n";
    const PAIR: &str = "publisher:correct horse battery";
    const ENCODED: &str = "cHVibGlzaGVyOmNvcnJlY3QgaG9yc2UgYmF0dGVyeQ";
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let users = root.join("users");
    fs::write(&users, USERS).unwrap();
    let auth = format!("auth:\n  htpasswd:\n    realm: r\n    path: {}\n", users.display());
    let registry = Registry::start(root, &auth);
    let file = built(root, "1.0.0", &[]);
    let (tag, state) = (registry.at(":1"), root.join("state"));
    let place = format!("oci://127.0.0.1:{}", registry.port);
    let push = ["package", "push", text(&file), &tag];
    let closed = told(root, &push);
    assert!(closed.contains(&format!("synapse secret set NAME --for {place}")), "{closed}");

    let keep = |value: &str| {
        let kept = set(&state, &["secret", "set", "reg", "--for", &place], value.as_bytes());
        assert!(kept.status.success(), "{}", err(&kept));
    };
    keep("publisher:wrong horse battery");
    let wrong = told(root, &push);
    assert!(wrong.contains("does not let whom the secret `reg` names"), "{wrong}");
    keep("no-pair-at-all");
    let wrong_form = told(root, &push);
    assert!(wrong_form.contains("not of the form USER:PASSWORD"), "{wrong_form}");
    assert!(out(&synapse(&state, &["secret", "list"])).contains(&place));
    keep(PAIR);
    let pushed = synapse(&state, &push);
    assert!(pushed.status.success(), "{}", err(&pushed));
    let installed = agreed(root, "install", &tag, &file);
    assert!(installed.status.success(), "{}", err(&installed));
    done(root, &["secret", "remove", "reg"]);
    let closed = told(root, &["upgrade", "reader"]);
    assert!(closed.contains("does not let everybody"), "{closed}");

    let said = [closed, wrong, wrong_form, err(&pushed), out(&pushed), err(&installed)].concat();
    let mut files = vec![state];
    let mut looked = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        looked += 1;
        for hidden in ["horse battery", "no-pair", ENCODED] {
            let hidden = hidden.as_bytes();
            assert!(
                !bytes.windows(hidden.len()).any(|bytes| bytes == hidden),
                "{}",
                path.display()
            );
        }
    }
    assert!(looked > 3, "{looked}");
    for hidden in ["horse", "no-pair", "cHVibGlzaGVy"] {
        assert!(!said.contains(hidden), "{hidden}: {said}");
    }
}
