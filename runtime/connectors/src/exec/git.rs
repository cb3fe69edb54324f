//! A repository in the folder of a line: what of it is copied, and by which rules
//!
//! A repository says which programs git starts: hooks, filters, pagers, editors, monitors.
//! None of that is copied. Git in a copy knows the history and nothing else.
//!
//! # Invariants
//! - No configuration and no hook of a repository is ever read by a program in a copy.
//! - The history of a repository is changed by the lines that ship, as they ship.
//!
//! # Not here
//! Which names are the history (`synapse_primitives::tree`).

use std::ffi::OsString;
use std::path::Path;

/// The lines that may change a repository's history, after the program.
const SHIPPED: [&[&str]; 2] =
    [&["add", "--all", "--", "{path}"], &["commit", "--no-verify", "--message={message}"]];

/// What is copied of a repository's own folder.
const COPIED: [&str; 13] = [
    "objects", "refs", "logs", "info", "HEAD", "index", "packed-refs", "shallow", "ORIG_HEAD",
    "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "COMMIT_EDITMSG",
];

/// The folder of a repository.
pub(super) const FOLDER: &str = ".git";

/// Whether a line ships, and is as it ships.
pub(super) fn is_shipped(line: &[String]) -> bool {
    let Some((program, words)) = line.split_first() else { return false };
    let is_git = program.rsplit('/').next() == Some("git");
    is_git && SHIPPED.iter().any(|shipped| words.iter().eq(shipped.iter()))
}

/// Whether a path of a folder is copied, as far as repositories go.
pub(super) fn is_copied(path: &str) -> bool {
    let mut parts = path.split('/');
    let own = parts.next().is_some_and(|first| first == FOLDER);
    let sound = !own || parts.next().is_none_or(|second| COPIED.contains(&second));
    let inner = |part: &str| part.eq_ignore_ascii_case(FOLDER);
    sound && !path.split('/').skip(usize::from(own)).any(inner)
}

/// Whether what stands at a path of a copy was never in the folder.
pub(super) fn is_ours(path: &str) -> bool {
    path.strip_prefix(FOLDER) == Some("/config")
}

/// The configuration that a copy has in place of the repository's.
pub(super) fn configuration(found: &str) -> String {
    let value = |section: &str, key: &str| {
        let (mut inside, mut last) = (false, None);
        for line in found.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('[') {
                inside = name.trim_end_matches(']').trim().eq_ignore_ascii_case(section);
            } else if let Some((name, value)) = line.split_once('=').filter(|_| inside)
                && name.trim().eq_ignore_ascii_case(key)
            {
                last = Some(value.trim());
            }
        }
        last
    };
    let version = value("core", "repositoryformatversion").filter(|version| *version == "1");
    let hash = value("extensions", "objectformat").filter(|format| *format == "sha256");
    format!(
        "[core]\n\trepositoryformatversion = {}\n\tbare = false\n\tfileMode = false\n\
         \tlogAllRefUpdates = true\n\thooksPath = /dev/null\n\tfsmonitor = false\n\
         [commit]\n\tgpgSign = false\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n{}",
        version.unwrap_or("0"),
        hash.map_or("", |_| "[extensions]\n\tobjectFormat = sha256\n"),
    )
}

/// Whether a line may have a variable that its manifest names: of git's own, who commits.
pub(super) fn admits(name: &str) -> bool {
    let who = ["GIT_AUTHOR_", "GIT_COMMITTER_"].iter().any(|who| name.starts_with(who));
    who || !name.starts_with("GIT_")
}

/// What keeps every git in a copy from other configuration, and from asking.
pub(super) fn variables(folder: &Path) -> impl Iterator<Item = (String, OsString)> {
    // A repository is the folder's own `.git`, or there is none: of a bare one every file
    // comes from the folder, its configuration too.
    let above = folder.parent().unwrap_or(folder).as_os_str().to_owned();
    [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_EDITOR", "/bin/false"),
        ("GIT_PAGER", "/bin/cat"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
        ("GIT_CONFIG_VALUE_0", "explicit"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), OsString::from(value)))
    .chain([("GIT_CEILING_DIRECTORIES".to_owned(), above)])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn of_a_repository_only_its_history_is_copied() {
        for (path, copied) in [
            ("src/a.rs", true),
            (".git", true),
            (".git/HEAD", true),
            (".git/objects/ab/cd", true),
            (".git/info/exclude", true),
            (".git/config", false),
            (".git/config.worktree", false),
            (".git/hooks/pre-commit", false),
            (".git/modules/x/config", false),
            (".git/commondir", false),
            (".GIT", false),
            ("sub/.git", false),
            ("sub/.git/HEAD", false),
            (".git/refs/.git", false),
            (".gitignore", true),
        ] {
            assert_eq!(is_copied(path), copied, "{path}");
        }
    }

    #[test]
    fn a_hostile_configuration_leaves_nothing_of_itself() {
        let hostile = "[core]\n\trepositoryformatversion = 1\n\tfsmonitor = /tmp/evil\n\
                       \thooksPath = /tmp\n[include]\n\tpath = /tmp/more\n[filter \"x\"]\n\
                       \tclean = evil\n[extensions]\n\tobjectFormat = sha256\n\
                       \tworktreeConfig = true\n[diff]\n\texternal = evil\n";
        let ours = configuration(hostile);
        for gone in ["evil", "/tmp", "filter", "include", "worktreeConfig", "external"] {
            assert!(!ours.contains(gone), "{ours}");
        }
        assert!(ours.contains("repositoryformatversion = 1") && ours.contains("sha256"), "{ours}");
        let plain = configuration("[core]\n\trepositoryformatversion = 0; evil\n");
        assert!(plain.contains("repositoryformatversion = 0\n") && !plain.contains("evil"));
    }

    #[test]
    fn no_variable_gives_git_a_program_or_a_place() {
        for name in ["GIT_EXTERNAL_DIFF", "GIT_DIR", "GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL"] {
            assert!(!admits(name), "{name}");
        }
        assert!(["PATH", "GIT_AUTHOR_NAME", "GIT_COMMITTER_DATE"].into_iter().all(admits));
    }

    #[test]
    fn a_bare_repository_of_plain_files_starts_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("objects")).unwrap();
        std::fs::create_dir_all(at("refs")).unwrap();
        std::fs::write(at("HEAD"), "ref: refs/heads/main\n").unwrap();
        let config = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\
                      \tfsmonitor = ./m\n";
        std::fs::write(at("config"), config).unwrap();
        std::fs::write(at("m"), "#!/bin/sh\ntouch ran\n").unwrap();
        std::fs::set_permissions(at("m"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let add = || {
            let mut git = std::process::Command::new("git");
            git.args(["add", "--all", "--", "."]).current_dir(folder.path());
            git
        };
        assert!(!add().env_clear().envs(variables(folder.path())).status().unwrap().success());
        assert!(!at("ran").exists());
        // Without them it would.
        add().env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(at("ran").exists());
    }

    #[test]
    fn a_line_ships_as_it_ships_or_not_at_all() {
        let line = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(is_shipped(&line("/usr/bin/git add --all -- {path}")));
        assert!(is_shipped(&line("/opt/git commit --no-verify --message={message}")));
        for other in [
            "/usr/bin/notgit add --all -- {path}",
            "/usr/bin/git commit --message={message}",
            "/usr/bin/git -c core.hooksPath=/x commit --no-verify --message={message}",
            "/usr/bin/git push",
        ] {
            assert!(!is_shipped(&line(other)), "{other}");
        }
    }
}
