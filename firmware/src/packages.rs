//! What the bundle brought: agents with their grants, and files.
//!
//! # Not here
//! The format (`synapse_bundle`). What may become a guest (`admit`).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use synapse_bundle::File;
use synapse_interpreter::{Interpreter, Program};
use synapse_kernel::admit::admit;
use synapse_kernel::engine::Engine;
use synapse_kernel::grant::Grant;
use synapse_kernel::render;

use crate::budget::Budget;
use crate::weight;

/// The files that the machine was started with.
#[derive(Debug, Default)]
pub(crate) struct Bundle {
    files: Vec<File<'static>>,
}

impl Bundle {
    /// Reads a boot module; an empty one is a bundle of nothing.
    pub(crate) fn read(module: &'static [u8]) -> Result<Self, String> {
        if module.is_empty() {
            return Ok(Self::default());
        }
        let files = synapse_bundle::read(module).collect::<Result<_, _>>();
        Ok(Self { files: files.map_err(|why| why.to_string())? })
    }

    /// The files whose paths begin like this, by the rest of their paths.
    pub(crate) fn below(
        &self,
        prefix: &str,
    ) -> impl Iterator<Item = (&'static str, &'static [u8])> {
        self.files
            .iter()
            .filter_map(move |file| Some((file.path.strip_prefix(prefix)?, file.bytes)))
    }

    /// The names of agents, in the order of the bundle.
    pub(crate) fn agents(&self) -> impl Iterator<Item = &'static str> {
        self.below(PACKAGES).filter_map(|(path, _)| {
            let (folder, file) = path.split_once('/')?;
            (file.strip_suffix(".wasm") == Some(folder)).then_some(folder)
        })
    }

    /// A file as text.
    pub(crate) fn text(&self, path: &str) -> Option<Result<&'static str, String>> {
        let bytes = self.file(path)?;
        Some(str::from_utf8(bytes).map_err(|_| format!("{path} is not UTF-8; write it as a text")))
    }

    /// An agent made ready, with what it may do.
    pub(crate) fn load(
        &self,
        name: &str,
        engine: &Interpreter,
        budget: &Budget,
    ) -> Result<(Program, Arc<Grant>), String> {
        let component = self.file(&format!("{PACKAGES}{name}/{name}.wasm")).ok_or_else(|| {
            format!("no agent is called `{}`; `help` names those that came along", shown(name))
        })?;
        let weight = weight::of(component);
        if weight > budget.code {
            return Err(format!(
                "{name} may take {} KiB when it is loaded, and this machine has room for {}; \
                 give it more memory",
                weight >> 10,
                budget.code >> 10
            ));
        }
        let admitted = admit(component).map_err(|why| format!("{name}: {why}"))?;
        if let Err(why) = admitted.boards().firmware {
            return Err(format!("{name}: {why}"));
        }
        let path = format!("{PACKAGES}{name}/grant.toml");
        let text =
            self.text(&path).ok_or_else(|| format!("{path} is missing from the bundle"))??;
        let grant = Grant::parse(text).map_err(|why| format!("{path}: {why}"))?;
        let program = engine.load(&admitted).map_err(|why| format!("{name}: {why}"))?;
        Ok((program, Arc::new(grant)))
    }

    fn file(&self, path: &str) -> Option<&'static [u8]> {
        self.files.iter().find(|file| file.path == path).map(|file| file.bytes)
    }
}

fn shown(name: &str) -> String {
    render::line(name, 40)
}

const PACKAGES: &str = "packages/";
