//! From a core module to a component
//!
//! The world is the SDK's own WIT file, so that the two cannot differ.
//!
//! # Invariants
//! The result has exactly one import, the function `synapse-call`.
//!
//! # Not here
//! Judging components that others made (`synapse-kernel`).

use wit_component::{ComponentEncoder, DecodedWasm, StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, WorldItem};

use super::error::BuildError;

/// Wraps a core module, after checking that it speaks the world of agents.
pub(crate) fn encode(module: &[u8]) -> Result<Vec<u8>, BuildError> {
    let component = wrap(module).map_err(|why| BuildError::Component { why })?;
    check_import(&component).map_err(|why| BuildError::Component { why })?;
    Ok(component)
}

fn wrap(module: &[u8]) -> Result<Vec<u8>, String> {
    let mut resolve = Resolve::default();
    let package = resolve.push_source("synapse.wit", WIT).map_err(|why| format!("{why:#}"))?;
    let world = resolve.select_world(&[package], Some(WORLD)).map_err(|why| format!("{why:#}"))?;
    let mut module = module.to_vec();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .map_err(|why| format!("{why:#}"))?;
    ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|why| format!("{why:#}"))
}

fn check_import(component: &[u8]) -> Result<(), String> {
    let DecodedWasm::Component(resolve, world) =
        wit_component::decode(component).map_err(|why| format!("{why:#}"))?
    else {
        return Err("the result is not a component".to_owned());
    };
    let Some(world) = resolve.worlds.get(world) else {
        return Err("the result has no world".to_owned());
    };
    let mut imports = world.imports.iter();
    match (imports.next(), imports.next()) {
        (Some((key, WorldItem::Function(_))), None)
            if resolve.name_world_key(key) == "synapse-call" =>
        {
            Ok(())
        }
        _ => {
            let names: Vec<_> =
                world.imports.keys().map(|key| resolve.name_world_key(key)).collect();
            Err(format!("it imports [{}] instead of [synapse-call]", names.join(", ")))
        }
    }
}

const WIT: &str = include_str!("../../../../guest-sdk/wit/synapse.wit");
const WORLD: &str = "agent";

#[cfg(test)]
mod tests {
    use super::{check_import, encode};

    const EXPORTS: &str = r#"
        (memory (export "memory") 1)
        (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 16)
        (func (export "turn") (param i32 i32) (result i32) i32.const 16)
        (func (export "cabi_post_turn") (param i32))"#;
    const CALL: &str = r#"(import "$root" "synapse-call" (func (param i32 i32 i32)))"#;

    fn told(imports: &str, exports: &str) -> String {
        let module = wat::parse_str(format!("(module {imports} {exports})")).unwrap();
        encode(&module).unwrap_err().to_string()
    }

    #[test]
    fn module_of_the_world_becomes_a_component_always_the_same() {
        let module = wat::parse_str(format!("(module {CALL} {EXPORTS})")).unwrap();
        let component = encode(&module).unwrap();
        assert_eq!(check_import(&component), Ok(()));
        assert_eq!(encode(&module).unwrap(), component);
    }

    #[test]
    fn module_that_never_imports_the_door_is_refused() {
        let told = told("", EXPORTS);
        assert!(told.contains("imports [] instead of [synapse-call]"), "{told}");
    }

    #[test]
    fn other_import_is_refused_by_name() {
        let wasi = r#"(import "wasi_snapshot_preview1" "fd_write" (func))"#;
        let told = told(&format!("{CALL} {wasi}"), EXPORTS);
        assert!(told.contains("wasi_snapshot_preview1"), "{told}");
    }

    #[test]
    fn module_without_a_turn_is_refused() {
        let told = told(CALL, &EXPORTS.replace("\"turn\"", "\"run\""));
        assert!(told.contains("turn"), "{told}");
    }

    #[test]
    fn import_with_other_parameters_is_refused() {
        let told = told(&CALL.replace("i32 i32 i32", "i64"), EXPORTS);
        assert!(told.contains("synapse-call"), "{told}");
    }
}
