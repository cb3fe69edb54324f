//! What may become a guest: a component that can reach the door, nothing else.
//!
//! One pass over the bytes validates all of them and reads the imports. What
//! is refused is named, so that who built the component knows what to change.
//!
//! # Invariants
//! - I2: an admitted component imports the function `synapse-call` or nothing;
//!   there is no second way out of a guest.
//! - The input is hostile: every byte is validated, nothing is run, work is
//!   linear in [`COMPONENT_MAX`], and names out of it are displayed escaped.
//!
//! # Not here
//! Compiling (an [`Engine`](crate::engine::Engine)). Whether a human approved
//! the package. How the firmware wires the core module that it takes out.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;

use wasmparser::component_types::{
    ComponentDefinedType, ComponentEntityType, ComponentFuncType, ComponentValType,
};
use wasmparser::types::TypesRef;
use wasmparser::{
    BinaryReaderError, Chunk, ComponentImportSectionReader, FuncValidatorAllocations, FunctionBody,
    Instance, InstanceSectionReader, Operator, Parser, Payload, PrimitiveValType, ValidPayload,
    Validator, WasmFeatures,
};

/// Bytes of the largest component that is looked at: 100 MiB.
pub const COMPONENT_MAX: usize = 100 << 20;

/// The one import: `func(list<u8>) -> result<list<u8>, u32>`.
pub const IMPORT: &str = "synapse-call";

/// The one export that is called, of the same type.
pub const EXPORT: &str = "turn";

/// Decides whether these bytes may become a guest.
///
/// Parameter names do not matter, nor do exports besides `turn`; a guest that
/// never calls out needs no import.
///
/// # Errors
/// [`NotAdmitted`] names the first reason found.
pub fn admit(bytes: &[u8]) -> Result<Admitted<'_>, NotAdmitted> {
    kind(bytes)?;
    let mut scan = Scan::new();
    scan.run(bytes)?;
    let firmware = scan.facts.firmware(bytes);
    Ok(Admitted { bytes, firmware })
}

/// A component that passed [`admit`].
#[derive(Clone, Debug)]
pub struct Admitted<'a> {
    bytes: &'a [u8],
    firmware: Result<(), NotFirmware>,
}

impl<'a> Admitted<'a> {
    /// The component, byte for byte as it was given.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The boards it fits.
    #[must_use]
    pub fn boards(&self) -> Boards {
        Boards { firmware: self.firmware.clone() }
    }
}

/// The boards that a component fits. The host takes whatever is admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boards {
    /// The firmware, or why not.
    pub firmware: Result<(), NotFirmware>,
}

/// Why an admitted component does not fit the firmware.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotFirmware {
    /// It holds components of its own.
    Nested,
    /// It holds this many core modules with code of their own.
    Modules(usize),
    /// It makes this many instances of its core module.
    Instances(usize),
    /// It uses an instruction or a type that the firmware's engine lacks.
    Feature {
        /// Where, in bytes from the start.
        offset: usize,
        /// The validator's message.
        why: String,
    },
}

/// Why a component is refused.
///
/// Strings are raw, as the component spells them; displaying escapes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAdmitted {
    /// It is longer than [`COMPONENT_MAX`].
    TooLarge {
        /// Its length.
        bytes: usize,
    },
    /// It does not begin as WebAssembly does.
    NotWasm,
    /// A core module, not yet a component.
    CoreModule,
    /// It ends in the middle of something.
    Truncated {
        /// Where the unfinished part begins, in bytes from the start.
        offset: usize,
    },
    /// It imports something besides `synapse-call`.
    SecondImport {
        /// The import's name.
        name: String,
    },
    /// It imports `synapse-call` as something else.
    ImportType,
    /// It exports no `turn`.
    NoTurn,
    /// It exports `turn` as something else.
    TurnType,
    /// It breaks a rule of WebAssembly, or uses a feature that is not taken.
    Invalid {
        /// Where, in bytes from the start.
        offset: usize,
        /// The validator's message.
        why: String,
    },
}

impl fmt::Display for NotAdmitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes } => write!(
                f,
                "the component is too large: {bytes} bytes, the limit is {COMPONENT_MAX}; \
                 build it without debug information, keep data in files"
            ),
            Self::NotWasm => f.write_str(
                "not WebAssembly: the file does not begin with its four bytes; \
                 give a component made by `synapse build`",
            ),
            Self::CoreModule => {
                f.write_str("a core module, not a component: build it with `synapse build`")
            }
            Self::Truncated { offset } => write!(
                f,
                "the component is cut short: the part at byte {offset} does not end; \
                 copy or build it again"
            ),
            Self::SecondImport { name } => write!(
                f,
                "the component imports `{}`: a guest may import `{IMPORT}` and nothing else; \
                 build it with `synapse build`, without WASI",
                Shown(name)
            ),
            Self::ImportType => write!(
                f,
                "the component imports `{IMPORT}` with another type: \
                 it must be func(list<u8>) -> result<list<u8>, u32>; \
                 build it against the WIT of this version"
            ),
            Self::NoTurn => write!(
                f,
                "the component exports no `{EXPORT}`: without it there is nothing to run; \
                 export {EXPORT}: func(list<u8>) -> result<list<u8>, u32>"
            ),
            Self::TurnType => write!(
                f,
                "the component exports `{EXPORT}` with another type: \
                 it must be func(list<u8>) -> result<list<u8>, u32>; \
                 build it against the WIT of this version"
            ),
            Self::Invalid { offset, why } => write!(
                f,
                "the component is not valid at byte {offset}: {}; \
                 build it again, for the plain component model",
                Shown(why)
            ),
        }
    }
}

impl Error for NotAdmitted {}

impl fmt::Display for NotFirmware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nested => f.write_str(
                "does not fit the firmware: it holds components of its own; \
                 build it with `synapse build`",
            ),
            Self::Modules(count) => write!(
                f,
                "does not fit the firmware: it holds {count} core modules with code, \
                 the firmware runs one; build it with `synapse build`"
            ),
            Self::Instances(count) => write!(
                f,
                "does not fit the firmware: it instantiates its core module {count} times, \
                 the firmware does once; build it with `synapse build`"
            ),
            Self::Feature { offset, why } => write!(
                f,
                "does not fit the firmware: at byte {offset}, {}; \
                 build it with `synapse build`, without SIMD",
                Shown(why)
            ),
        }
    }
}

impl Error for NotFirmware {}

/// A string of someone else's, escaped and cut for display.
pub(crate) struct Shown<'a>(pub(crate) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CHARS: usize = 80;
        let mut left = CHARS;
        for c in self.0.chars() {
            let escaped = c.escape_debug();
            let Some(rest) = left.checked_sub(escaped.len()) else {
                return f.write_str("…");
            };
            left = rest;
            escaped.fmt(f)?;
        }
        Ok(())
    }
}

/// What the firmware's engine runs.
const FIRMWARE: WasmFeatures = WasmFeatures::MUTABLE_GLOBAL
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::REFERENCE_TYPES)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::BULK_MEMORY)
    .union(WasmFeatures::FLOATS)
    .union(WasmFeatures::EXTENDED_CONST)
    .union(WasmFeatures::TAIL_CALL)
    .union(WasmFeatures::COMPONENT_MODEL);

/// What the host's engine runs. Relaxed SIMD is left out because it may differ
/// from machine to machine; threads, garbage collection, 64-bit memories,
/// exceptions and asynchronous components because no guest needs them here.
const HOST: WasmFeatures = FIRMWARE.union(WasmFeatures::SIMD);

/// Tells apart, by the first eight bytes, what people mistake for a component.
fn kind(bytes: &[u8]) -> Result<(), NotAdmitted> {
    const MAGIC: &[u8] = b"\0asm";
    const MODULE: &[u8] = b"\0asm\x01\0\0\0";

    if bytes.len() > COMPONENT_MAX {
        return Err(NotAdmitted::TooLarge { bytes: bytes.len() });
    }
    let head = bytes.get(..MAGIC.len()).unwrap_or(bytes);
    if !MAGIC.starts_with(head) {
        return Err(NotAdmitted::NotWasm);
    }
    if bytes.len() < MODULE.len() {
        return Err(NotAdmitted::Truncated { offset: 0 });
    }
    if bytes.starts_with(MODULE) {
        return Err(NotAdmitted::CoreModule);
    }
    Ok(())
}

/// The pass over all bytes.
struct Scan {
    validator: Validator,
    allocations: FuncValidatorAllocations,
    facts: Facts,
    imports_door: bool,
}

impl Scan {
    fn new() -> Self {
        Self {
            validator: Validator::new_with_features(HOST),
            allocations: FuncValidatorAllocations::default(),
            facts: Facts::default(),
            imports_door: false,
        }
    }

    fn run(&mut self, bytes: &[u8]) -> Result<(), NotAdmitted> {
        let mut outer = Vec::new();
        let mut parser = Parser::new(0);
        parser.set_features(HOST);
        let mut rest = bytes;
        loop {
            let offset = bytes.len().saturating_sub(rest.len());
            // Only the outermost level may end where the bytes end.
            let last = rest.is_empty() && outer.is_empty();
            let (consumed, payload) = match parser.parse(rest, last).map_err(|e| invalid(&e))? {
                Chunk::NeedMoreData(_) => return Err(NotAdmitted::Truncated { offset }),
                Chunk::Parsed { consumed, payload } => (consumed, payload),
            };
            rest = rest.get(consumed..).unwrap_or_default();

            if let (Payload::ComponentImportSection(imports), true) = (&payload, outer.is_empty()) {
                self.imports(imports)?;
            }
            let valid = self.validator.payload(&payload).map_err(|e| invalid(&e))?;
            self.facts.note(&payload, outer.is_empty());
            match valid {
                ValidPayload::Ok => {}
                ValidPayload::Parser(inner) => {
                    outer.push(core::mem::replace(&mut parser, inner));
                }
                ValidPayload::Func(function, body) => {
                    let allocations = core::mem::take(&mut self.allocations);
                    let mut function = function.into_validator(allocations);
                    function.validate(&body).map_err(|e| invalid(&e))?;
                    self.allocations = function.into_allocations();
                    self.facts.body(&body);
                }
                ValidPayload::End(types) => match outer.pop() {
                    Some(enclosing) => parser = enclosing,
                    None => return self.root(types.as_ref()),
                },
            }
        }
    }

    /// Reads the component's own imports before they are validated: a name is
    /// more use to whoever built it than a missing feature of the type.
    fn imports(&mut self, section: &ComponentImportSectionReader<'_>) -> Result<(), NotAdmitted> {
        for import in section.clone() {
            let name = import.map_err(|e| invalid(&e))?.name.0;
            if name != IMPORT {
                return Err(NotAdmitted::SecondImport { name: name.to_string() });
            }
            self.imports_door = true;
        }
        Ok(())
    }

    fn root(&self, types: TypesRef<'_>) -> Result<(), NotAdmitted> {
        if self.imports_door {
            let import = types.component_entity_type_of_import(IMPORT);
            if !import.is_some_and(|item| is_bytes_to_bytes(item, types)) {
                return Err(NotAdmitted::ImportType);
            }
        }
        match types.component_entity_type_of_export(EXPORT) {
            None => Err(NotAdmitted::NoTurn),
            Some(item) if is_bytes_to_bytes(item, types) => Ok(()),
            Some(_) => Err(NotAdmitted::TurnType),
        }
    }
}

/// Whether an item is a `func(list<u8>) -> result<list<u8>, u32>`.
fn is_bytes_to_bytes(item: ComponentEntityType, types: TypesRef<'_>) -> bool {
    let ComponentEntityType::Func(id) = item else {
        return false;
    };
    let Some(ComponentFuncType { params, result: Some(result), .. }) = types.get(id) else {
        return false;
    };
    let [(_, param)] = &**params else {
        return false;
    };
    let Some(ComponentDefinedType::Result { ok: Some(ok), err: Some(err), .. }) =
        defined(*result, types)
    else {
        return false;
    };
    is_bytes(*param, types)
        && is_bytes(*ok, types)
        && is_primitive(*err, PrimitiveValType::U32, types)
}

fn is_bytes(ty: ComponentValType, types: TypesRef<'_>) -> bool {
    matches!(
        defined(ty, types),
        Some(ComponentDefinedType::List(element))
            if is_primitive(*element, PrimitiveValType::U8, types)
    )
}

fn is_primitive(ty: ComponentValType, want: PrimitiveValType, types: TypesRef<'_>) -> bool {
    match ty {
        ComponentValType::Primitive(found) => found == want,
        ComponentValType::Type(_) => matches!(
            defined(ty, types),
            Some(ComponentDefinedType::Primitive(found)) if *found == want
        ),
    }
}

fn defined(ty: ComponentValType, types: TypesRef<'_>) -> Option<&ComponentDefinedType> {
    match ty {
        ComponentValType::Primitive(_) => None,
        ComponentValType::Type(id) => types.get(id),
    }
}

/// What decides about the firmware, gathered on the way.
#[derive(Default)]
struct Facts {
    nested: bool,
    /// The outermost core modules in order.
    modules: Vec<Module>,
    /// Indices of the modules that are instantiated, in order.
    instantiated: Vec<u32>,
}

/// A core module is a guest's unless nothing in it can be one's: the encoder's
/// shims hold no state and only pass calls on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Module {
    Shim,
    Guest,
}

impl Facts {
    fn note(&mut self, payload: &Payload<'_>, outermost: bool) {
        match payload {
            Payload::ComponentSection { .. } => self.nested = true,
            Payload::ModuleSection { .. } if outermost => self.modules.push(Module::Shim),
            Payload::InstanceSection(section) if outermost => self.instances(section),
            Payload::MemorySection(_)
            | Payload::GlobalSection(_)
            | Payload::DataSection(_)
            | Payload::StartSection { .. } => self.is_guest(),
            _ => {}
        }
    }

    fn instances(&mut self, section: &InstanceSectionReader<'_>) {
        self.instantiated.extend(section.clone().into_iter().flatten().filter_map(|i| match i {
            Instance::Instantiate { module_index, .. } => Some(module_index),
            Instance::FromExports(_) => None,
        }));
    }

    fn body(&mut self, body: &FunctionBody<'_>) {
        if self.modules.last() == Some(&Module::Shim) && !passes_on(body) {
            self.is_guest();
        }
    }

    fn is_guest(&mut self) {
        if let Some(module) = self.modules.last_mut() {
            *module = Module::Guest;
        }
    }

    fn firmware(&self, bytes: &[u8]) -> Result<(), NotFirmware> {
        if self.nested {
            return Err(NotFirmware::Nested);
        }
        let mut guests =
            self.modules.iter().enumerate().filter(|(_, module)| **module == Module::Guest);
        let count = guests.clone().count();
        let (1, Some((guest, _))) = (count, guests.next()) else {
            return Err(NotFirmware::Modules(count));
        };
        let instances =
            self.instantiated.iter().filter(|index| usize::try_from(**index) == Ok(guest)).count();
        if instances != 1 {
            return Err(NotFirmware::Instances(instances));
        }
        Validator::new_with_features(FIRMWARE)
            .validate_all(bytes)
            .map(drop)
            .map_err(|e| NotFirmware::Feature { offset: e.offset(), why: e.message().to_string() })
    }
}

/// Whether a function only hands its arguments to a table entry.
fn passes_on(body: &FunctionBody<'_>) -> bool {
    let Ok(mut operators) = body.get_operators_reader() else {
        return false;
    };
    while !operators.eof() {
        match operators.read() {
            Ok(
                Operator::LocalGet { .. }
                | Operator::I32Const { .. }
                | Operator::CallIndirect { .. }
                | Operator::End,
            ) => {}
            Ok(_) | Err(_) => return false,
        }
    }
    true
}

fn invalid(error: &BinaryReaderError) -> NotAdmitted {
    NotAdmitted::Invalid { offset: error.offset(), why: error.message().to_string() }
}
