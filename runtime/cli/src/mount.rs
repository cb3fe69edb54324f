//! `--dir`: which folder of this machine an agent sees, and where
//!
//! # Not here
//! Whether the guest path is a normal one, and opening the folder (`synapse-host`).

use std::path::PathBuf;
use synapse_host::run::MountOption;

/// Reads `HOST[=/GUEST[:ro]]`.
///
/// The last `=/` divides, so that a folder's own name may hold one when the
/// guest path is given as well.
pub(crate) fn parse(text: &str) -> Result<MountOption, String> {
    let at = text.rfind("=/");
    let (host, guest) = at.and_then(|at| text.split_at_checked(at)).unwrap_or((text, ""));
    let guest = guest.strip_prefix('=').unwrap_or(DEFAULT);
    let (guest, read_only) = match guest.strip_suffix(":ro") {
        Some(guest) => (guest, true),
        None => (guest, false),
    };
    if host.is_empty() {
        return Err("no folder of this machine is named; write HOST=/data".to_owned());
    }
    if let Some(name) = host.strip_suffix(":ro").filter(|_| at.is_none()) {
        return Err(format!("`:ro` follows a guest path; write {name}={DEFAULT}:ro"));
    }
    Ok(MountOption { host: PathBuf::from(host), guest: guest.to_owned(), read_only })
}

const DEFAULT: &str = "/data";

#[cfg(test)]
mod tests {
    use super::parse;
    use std::path::Path;

    #[test]
    fn each_form_is_read() {
        for (text, host, guest, read_only) in [
            ("notes", "notes", "/data", false),
            ("/home/a=/data", "/home/a", "/data", false),
            ("/home/a=/in:ro", "/home/a", "/in", true),
            ("a=b=/in/deep", "a=b", "/in/deep", false),
            ("a=/b=/in", "a=/b", "/in", false),
            ("a=b", "a=b", "/data", false),
        ] {
            let mount = parse(text).unwrap();
            assert_eq!(mount.host, Path::new(host), "{text}");
            assert_eq!((&*mount.guest, mount.read_only), (guest, read_only), "{text}");
        }
        for text in ["", "=/data", "notes:ro"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
