//! Names whose content tells tools or agents what to do.
//!
//! Who may write one of these decides what runs next, so writing them is
//! destructive whatever the primitive. The list is data; it is compared folded.
//!
//! # Invariants
//! - I11: names are compared after [`crate::path::fold`].
//!
//! # Not here
//! What a protected name means for a call (gate 3).

use crate::path::{NormalPath, fold};

/// One component: the name itself, or a directory with all below it.
const NAMES: &[&str] = &[
    "soul.md", "memory.md", "agents.md", "claude.md", "claude.local.md", "gemini.md",
    ".cursorrules", ".cursor", ".claude", ".mcp.json", ".git", ".gitmodules", ".gitconfig",
    ".gitlab-ci.yml", ".yarnrc.yml", ".devcontainer", ".zed", ".inputrc", ".xprofile", ".vimrc",
    ".gitattributes", ".githooks", ".husky", ".pre-commit-config.yaml", ".envrc", ".vscode",
    ".idea", ".npmrc", ".ssh", "sitecustomize.py", "manifest.toml", ".bashrc", ".bash_profile",
    ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
    ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login",
];

/// How the name of a bare repository ends, and that of a file which Python runs.
const ENDS: [&str; 2] = [".git", ".pth"];

/// Two components in a row; the second may be a prefix that ends in `*`.
const PAIRS: &[(&str, &str)] = &[
    (".github", "workflows"),
    (".github", "copilot-instructions.md"),
    (".cargo", "config*"),
    (".config", "autostart"),
    (".config", "fish"),
    (".config", "git"),
    (".config", "systemd"),
];

/// Whether the path is, or lies below, a protected name.
#[must_use]
pub fn is_protected(path: &NormalPath<'_>) -> bool {
    let folded = fold(path.as_str());
    // Each of the names and of the pairs has a dot, and most paths have none.
    if !folded.contains('.') {
        return false;
    }
    // Behind the last one: a directory that would become or cease to be half of a pair.
    let after = folded.split('/').skip(1).chain([""]);
    folded.split('/').zip(after).any(|(name, next)| {
        let pair = |(first, second): &(&str, &str)| {
            let prefix = second.strip_suffix('*');
            let is_second = prefix.map_or(next == *second, |prefix| next.starts_with(prefix));
            name == *first && (is_second || next.is_empty())
        };
        let is_name = || ENDS.iter().any(|end| name.ends_with(end)) || NAMES.contains(&name);
        name.contains('.') && (is_name() || PAIRS.iter().any(pair))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_dot_is_no_name() {
        assert!(NAMES.iter().all(|name| name.contains('.')));
    }

    #[test]
    fn names_are_protected_however_they_are_spelled() {
        let protected = [
            "/data/SOUL.md",
            "/data/soul.MD",
            "/data/a/.GIT/config",
            "/data/.git",
            "/x/repo.git/HEAD",
            "/data/.github/workflows/ci.yml",
            "/data/.github/Workflows",
            "/data/.github",
            "/home/.cargo/config.toml",
            "/home/.cargo",
            "/home/.ssh/id",
            "/home/.config/autostart/a",
            "/v/site-packages/x.pth",
            "/data/manifest.toml",
            "/home/.Bashrc",
            "/data/.vscode/tasks.json",
            "/home/.gitconfig",
            "/home/.config/git/config",
            "/home/.config/systemd/user/a.service",
            "/data/.github/copilot-instructions.md",
            "/data/.devcontainer/x",
            "/home/.vimrc",
        ];
        for path in protected {
            assert!(is_protected(&NormalPath::parse(path.into()).unwrap()), "{path}");
        }
        for path in
            ["/data/notes.md", "/data/git/a", "/data/.github/CODEOWNERS", "/", "/data/workflows"]
        {
            assert!(!is_protected(&NormalPath::parse(path.into()).unwrap()), "{path}");
        }
    }
}
