//! The password that a person keeps for a registry, as `USER:PASSWORD`.
//!
//! # Invariants
//! - I17: in what is asked it stands as a blank, which the network fills in where the
//!   secret may go, and nowhere else.
//!
//! # Not here
//! Keeping it (`synapse_secrets`). Whether a registry wants it (`registry`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use synapse_secrets::vault::Vault;
use synapse_secrets::{Destination, Given, Secret, Value};
use zeroize::Zeroizing;

use super::super::PackageError;
use super::address::server;

/// What it is called in a request.
pub(super) const NAME: &str = "registry";

/// The header that has it.
pub(super) const HEADER: &str = "Basic {secret:registry}";

/// What is kept for a registry: the secret's name, and what is sent of it to where.
pub(super) fn of(vault: &Vault, authority: &str) -> Result<Option<(String, Given)>, PackageError> {
    let failed = |why: &str, todo: &str| {
        PackageError::new(&format!("the password for `{authority}` cannot be had"), why, todo)
    };
    let kept = vault.read().map_err(|why| failed(&why.to_string(), "then do it again"))?;
    let is_for =
        |place: &Destination| matches!(place, Destination::Registry(at) if at == authority);
    let mut own = kept.into_iter().filter(|secret| secret.destinations.iter().any(is_for));
    let Some(secret) = own.next() else { return Ok(None) };
    let name = secret.name;
    if let Some(other) = own.next() {
        return Err(failed(
            &format!("two secrets are for it, `{name}` and `{}`", other.name),
            "remove one of them with `synapse secret remove`",
        ));
    }
    let pair = secret.value.expose();
    if pair.split_once(':').is_none_or(|(user, _)| user.is_empty()) {
        return Err(failed(
            &format!("the secret `{name}` is not of the form USER:PASSWORD"),
            &format!("give it anew: `synapse secret set {name}`"),
        ));
    }
    let encoded = Zeroizing::new(STANDARD.encode(pair));
    let servers = secret.destinations.iter().filter_map(|place| match place {
        Destination::Registry(at) => Some(server(at)),
        Destination::Origin(_) | Destination::Tool(_) => None,
    });
    let servers: Vec<String> = servers.collect();
    let sent = Value::parse(encoded.as_bytes())
        .and_then(|value| Secret::new(NAME, value, &servers))
        .map_err(|why| failed(&why.to_string(), "give a shorter one"))?;
    Ok(Some((name, Given::new(vec![sent], |_| true))))
}
