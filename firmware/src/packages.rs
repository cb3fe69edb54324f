//! What the bundle brought: agents with their grants, packages, and files.
//!
//! # Not here
//! The format (`synapse_bundle`). What may become a guest (`admit`). Installing (`install`).

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

    /// The names of packages that can be installed, in the order of the bundle.
    pub(crate) fn packages(&self) -> impl Iterator<Item = &'static str> {
        self.below(PACKAGES)
            .filter_map(|(path, _)| path.strip_suffix(FILE).filter(|name| !name.contains('/')))
    }

    /// The file of a package, if it can be read in so many bytes of memory.
    pub(crate) fn package(&self, name: &str, room: usize) -> Result<&'static [u8], String> {
        let file = self.file(&format!("{PACKAGES}{name}{FILE}")).ok_or_else(|| {
            format!(
                "no package is called `{}`; `list` names those that came along",
                render::line(name, 40)
            )
        })?;
        small(name, weight::of_package(file), room)?;
        Ok(file)
    }

    /// An agent that came with its grant made ready.
    pub(crate) fn load(
        &self,
        name: &str,
        engine: &Interpreter,
        budget: &Budget,
    ) -> Result<(Program, Arc<Grant>), String> {
        let (component, grant) = self.agent(name)?;
        Ok((load(name, component, engine, budget)?, Arc::new(grant)))
    }

    /// Its component and its grant.
    fn agent(&self, name: &str) -> Result<(&'static [u8], Grant), String> {
        let component = self.file(&format!("{PACKAGES}{name}/{name}.wasm")).ok_or_else(|| {
            format!(
                "no agent is called `{}`; `help` names those that came along",
                render::line(name, 40)
            )
        })?;
        let path = format!("{PACKAGES}{name}/grant.toml");
        let text =
            self.text(&path).ok_or_else(|| format!("{path} is missing from the bundle"))??;
        let grant = Grant::parse(text).map_err(|why| format!("{path}: {why}"))?;
        Ok((component, grant))
    }

    fn file(&self, path: &str) -> Option<&'static [u8]> {
        self.files.iter().find(|file| file.path == path).map(|file| file.bytes)
    }
}

/// An agent's component made ready.
pub(crate) fn load(
    name: &str,
    component: &[u8],
    engine: &Interpreter,
    budget: &Budget,
) -> Result<Program, String> {
    small(name, weight::of(component), budget.code)?;
    let admitted = admit(component).map_err(|why| format!("{name}: {why}"))?;
    if let Err(why) = admitted.boards().firmware {
        return Err(format!("{name}: {why}"));
    }
    engine.load(&admitted).map_err(|why| format!("{name}: {why}"))
}

fn small(name: &str, weight: usize, room: usize) -> Result<(), String> {
    if weight <= room {
        return Ok(());
    }
    Err(format!(
        "{} may take {} KiB when it is loaded, and this machine has room for {}; give it more \
         memory",
        render::line(name, 40),
        weight >> 10,
        room >> 10
    ))
}

const PACKAGES: &str = "packages/";
const FILE: &str = ".synapse";
