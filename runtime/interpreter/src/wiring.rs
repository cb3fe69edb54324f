//! What a component is made of: core modules, and what each is given.
//!
//! A component is a list of definitions that refer to earlier ones by number.
//! `admit` has validated all of them, types included; here the numbers become
//! [`Step`]s in the order in which a turn takes them, so that a turn looks
//! nothing up but exports by name. The encoder's shims are modules like others.
//!
//! # Not here
//! Components inside components, and functions of the component model besides
//! the door and `turn`: no guest of ours has them, so they do not load.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Display;

use synapse_kernel::admit::EXPORT;
use wasmparser::{
    CanonicalFunction, CanonicalOption, ComponentAlias, ComponentExport, ComponentExternalKind,
    ComponentOuterAliasKind, ComponentTypeRef, ExternalKind, Instance, Parser, Payload,
};

use crate::start;

/// What a turn does to have a guest, and what it then calls.
pub(crate) struct Wiring {
    pub(crate) steps: Vec<Step>,
    pub(crate) turn: Turn,
}

/// One step towards an instance of a guest.
pub(crate) enum Step {
    /// A core module is instantiated, as the next instance.
    Instantiate(Instantiate),
    /// The door becomes a core function, as the next door.
    Door(Abi),
}

pub(crate) struct Instantiate {
    pub(crate) code: wasmi::Module,
    /// In the order of the module's imports.
    pub(crate) imports: Vec<Source>,
    /// The export to be called before anything else is done.
    pub(crate) start: Option<String>,
}

/// Where a core item comes from.
#[derive(Clone)]
pub(crate) enum Source {
    /// An export of the instance of this number.
    Export(usize, String),
    /// The door of this number.
    Door(usize),
}

/// How bytes are put into a guest.
#[derive(Clone)]
pub(crate) struct Abi {
    pub(crate) memory: Source,
    pub(crate) realloc: Source,
}

/// The guest's `turn`.
#[derive(Clone)]
pub(crate) struct Turn {
    pub(crate) function: Source,
    pub(crate) abi: Abi,
    pub(crate) clean_up: Option<Source>,
}

impl Wiring {
    /// Compiles what there is; instances may have so many bytes of code.
    pub(crate) fn read(
        engine: &wasmi::Engine,
        component: &[u8],
        room: usize,
    ) -> Result<Self, String> {
        let mut reader = Reader::new(engine, component, room);
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(component) {
            let payload = payload.map_err(why)?;
            if depth == 0 {
                reader.payload(&payload)?;
            }
            match payload {
                Payload::ModuleSection { .. } => depth = depth.saturating_add(1),
                Payload::End(_) => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        let turn =
            reader.turn.ok_or_else(|| unsupported("a `turn` that is no function of its own"))?;
        Ok(Self { steps: reader.steps, turn })
    }
}

/// The numbered definitions that were read so far.
struct Reader<'a> {
    engine: &'a wasmi::Engine,
    component: &'a [u8],
    modules: Vec<Module>,
    /// What the component model calls core instances: an instance of a module,
    /// or a set of items under names.
    instances: Vec<CoreInstance>,
    functions: Vec<Source>,
    tables: Vec<Source>,
    memories: Vec<Source>,
    globals: Vec<Source>,
    /// Functions of the component model.
    lifted: Vec<Function>,
    steps: Vec<Step>,
    made: usize,
    /// Bytes of code that may still be instantiated.
    room: usize,
    doors: usize,
    turn: Option<Turn>,
}

#[derive(Clone)]
struct Module {
    code: wasmi::Module,
    /// The export that stands for its start function.
    start: Option<String>,
    bytes: usize,
}

enum CoreInstance {
    Made(usize),
    Items(BTreeMap<String, Source>),
}

#[derive(Clone)]
enum Function {
    Door,
    Guest(Turn),
    Other,
}

impl<'a> Reader<'a> {
    const fn new(engine: &'a wasmi::Engine, component: &'a [u8], room: usize) -> Self {
        Self {
            engine,
            component,
            modules: Vec::new(),
            instances: Vec::new(),
            functions: Vec::new(),
            tables: Vec::new(),
            memories: Vec::new(),
            globals: Vec::new(),
            lifted: Vec::new(),
            steps: Vec::new(),
            made: 0,
            room,
            doors: 0,
            turn: None,
        }
    }

    fn payload(&mut self, payload: &Payload<'_>) -> Result<(), String> {
        match payload {
            Payload::ModuleSection { unchecked_range: range, .. } => {
                let bytes = self.component.get(range.clone());
                self.module(bytes.ok_or_else(|| unsupported("a module that is cut short"))?)?;
            }
            Payload::ComponentSection { .. } => {
                return Err(unsupported("a component inside the component"));
            }
            Payload::InstanceSection(section) => {
                for instance in section.clone() {
                    self.instance(instance.map_err(why)?)?;
                }
            }
            Payload::ComponentAliasSection(section) => {
                for alias in section.clone() {
                    self.alias(&alias.map_err(why)?)?;
                }
            }
            Payload::ComponentCanonicalSection(section) => {
                for function in section.clone() {
                    self.canonical(function.map_err(why)?)?;
                }
            }
            Payload::ComponentImportSection(section) => {
                for import in section.clone() {
                    // `admit` took no import but the door.
                    if matches!(import.map_err(why)?.ty, ComponentTypeRef::Func(_)) {
                        self.lifted.push(Function::Door);
                    }
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section.clone() {
                    self.export(&export.map_err(why)?)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn module(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (code, start) = match start::exported(bytes).map_err(why)? {
            Some(started) => (compile(self.engine, &started.module)?, Some(started.export)),
            None => (compile(self.engine, bytes)?, None),
        };
        self.modules.push(Module { code, start, bytes: bytes.len() });
        Ok(())
    }

    fn instance(&mut self, instance: Instance<'_>) -> Result<(), String> {
        let instance = match instance {
            Instance::FromExports(exports) => {
                let mut items = BTreeMap::new();
                for export in exports {
                    let source = at(self.core(export.kind)?, export.index)?.clone();
                    items.insert(export.name.to_owned(), source);
                }
                CoreInstance::Items(items)
            }
            Instance::Instantiate { module_index, args } => {
                let Module { code, start, bytes } = at(&self.modules, module_index)?.clone();
                self.made = self.made.saturating_add(1);
                self.room = self.room.checked_sub(bytes).ok_or("it holds more code than fits")?;
                if self.made > INSTANCES {
                    return Err(format!("it instantiates more than {INSTANCES} core modules"));
                }
                let args: BTreeMap<_, _> = args.iter().map(|arg| (arg.name, arg.index)).collect();
                let mut imports = Vec::new();
                for import in code.imports() {
                    let missing = || unsupported("an import that nothing fits");
                    let arg = args.get(import.module()).ok_or_else(missing)?;
                    imports.push(self.member(*arg, import.name())?);
                }
                self.steps.push(Step::Instantiate(Instantiate { code, imports, start }));
                CoreInstance::Made(self.made.saturating_sub(1))
            }
        };
        self.instances.push(instance);
        Ok(())
    }

    /// An item of a core instance, by its name.
    fn member(&self, instance: u32, name: &str) -> Result<Source, String> {
        match at(&self.instances, instance)? {
            CoreInstance::Made(number) => Ok(Source::Export(*number, name.to_owned())),
            CoreInstance::Items(items) => {
                items.get(name).cloned().ok_or_else(|| unsupported("an import that nothing fits"))
            }
        }
    }

    fn core(&mut self, kind: ExternalKind) -> Result<&mut Vec<Source>, String> {
        match kind {
            ExternalKind::Func => Ok(&mut self.functions),
            ExternalKind::Table => Ok(&mut self.tables),
            ExternalKind::Memory => Ok(&mut self.memories),
            ExternalKind::Global => Ok(&mut self.globals),
            ExternalKind::Tag => Err(unsupported("an exception")),
        }
    }

    fn alias(&mut self, alias: &ComponentAlias<'_>) -> Result<(), String> {
        match *alias {
            ComponentAlias::CoreInstanceExport { kind, instance_index, name } => {
                let source = self.member(instance_index, name)?;
                self.core(kind)?.push(source);
            }
            ComponentAlias::InstanceExport { kind: ComponentExternalKind::Func, .. } => {
                self.lifted.push(Function::Other);
            }
            ComponentAlias::InstanceExport { kind: ComponentExternalKind::Module, .. }
            | ComponentAlias::Outer { kind: ComponentOuterAliasKind::CoreModule, .. } => {
                return Err(unsupported("a second name for a module"));
            }
            ComponentAlias::InstanceExport { .. } | ComponentAlias::Outer { .. } => {}
        }
        Ok(())
    }

    fn canonical(&mut self, function: CanonicalFunction) -> Result<(), String> {
        match function {
            CanonicalFunction::Lift { core_func_index, options, .. } => {
                let function = at(&self.functions, core_func_index)?.clone();
                // A function of another type may do without memory; it is not `turn`.
                let lifted = match self.options(&options)? {
                    (Some(abi), clean_up) => Function::Guest(Turn { function, abi, clean_up }),
                    (None, _) => Function::Other,
                };
                self.lifted.push(lifted);
            }
            CanonicalFunction::Lower { func_index, options } => {
                let (Function::Door, (Some(abi), _)) =
                    (at(&self.lifted, func_index)?, self.options(&options)?)
                else {
                    return Err(unsupported("a component that calls itself"));
                };
                self.steps.push(Step::Door(abi));
                self.functions.push(Source::Door(self.doors));
                self.doors = self.doors.saturating_add(1);
            }
            _ => return Err(unsupported("a resource or a thread")),
        }
        Ok(())
    }

    fn options(
        &self,
        options: &[CanonicalOption],
    ) -> Result<(Option<Abi>, Option<Source>), String> {
        let (mut memory, mut realloc, mut clean_up) = (None, None, None);
        for option in options {
            match *option {
                CanonicalOption::Memory(index) => memory = Some(at(&self.memories, index)?.clone()),
                CanonicalOption::Realloc(index) => {
                    realloc = Some(at(&self.functions, index)?.clone());
                }
                CanonicalOption::PostReturn(index) => {
                    clean_up = Some(at(&self.functions, index)?.clone());
                }
                // How strings are written: there are none.
                CanonicalOption::UTF8 | CanonicalOption::UTF16 | CanonicalOption::CompactUTF16 => {}
                _ => return Err(unsupported("an asynchronous call")),
            }
        }
        let abi = memory.zip(realloc).map(|(memory, realloc)| Abi { memory, realloc });
        Ok((abi, clean_up))
    }

    /// What is exported gets a number of its own.
    fn export(&mut self, export: &ComponentExport<'_>) -> Result<(), String> {
        match export.kind {
            ComponentExternalKind::Func => {
                let function = at(&self.lifted, export.index)?.clone();
                if let (EXPORT, Function::Guest(turn)) = (export.name.0, &function) {
                    self.turn = Some(turn.clone());
                }
                self.lifted.push(function);
            }
            ComponentExternalKind::Module => {
                return Err(unsupported("a second name for a module"));
            }
            _ => {}
        }
        Ok(())
    }
}

fn compile(engine: &wasmi::Engine, module: &[u8]) -> Result<wasmi::Module, String> {
    wasmi::Module::new(engine, module).map_err(why)
}

/// A definition by its number. `admit` has checked that it is there.
fn at<T>(all: &[T], index: u32) -> Result<&T, String> {
    usize::try_from(index)
        .ok()
        .and_then(|index| all.get(index))
        .ok_or_else(|| unsupported("a definition that is missing"))
}

fn why(error: impl Display) -> String {
    error.to_string()
}

fn unsupported(what: &str) -> String {
    format!("the interpreter does not run {what}")
}

/// Core modules that a component may instantiate, as on wasmtime.
const INSTANCES: usize = 64;
