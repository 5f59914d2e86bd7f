//! The tables of a program: the functions of a server, and how the frames of its C library are left.

use libbpf_rs::{MapCore, MapFlags, Object, OpenObject};

use super::Tables;
use super::skeleton::types;
use crate::carrier::{self, CarrierError, kernel_error};

const FUNCTIONS: &str = "functions";
const ROWS: &str = "unwind_rows";
const WHAT: &str = "the tables of waits";

/// Gives the maps their sizes, and tells the program how many entries they have, and whether it is to tell stacks.
pub(super) fn set_sizes(
    open: &mut OpenObject,
    tables: &Tables,
    tells_stacks: bool,
) -> Result<(), CarrierError> {
    let counts = [tables.functions.len() as u32, tables.rows.len() as u32, tells_stacks.into()];
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let count = match name.as_str() {
            FUNCTIONS => counts[0],
            ROWS => counts[1],
            _ if name.ends_with(".rodata") => {
                set_constants(&mut map, counts)?;
                continue;
            }
            _ => continue,
        };
        map.set_max_entries(count.max(1)).map_err(kernel_error(WHAT))?;
    }
    Ok(())
}

/// The constants hold the layout, and behind it `struct tables`.
fn set_constants(
    map: &mut libbpf_rs::OpenMapMut<'_>,
    numbers: [u32; 3],
) -> Result<(), CarrierError> {
    let at = size_of::<types::config>().next_multiple_of(align_of::<types::tables>());
    let whole = map.initial_value_mut().unwrap_or_default();
    let place = whole.get_mut(at..at + size_of::<types::tables>());
    let place = place.ok_or(CarrierError::Kernel { what: WHAT, why: "no constants".into() })?;
    place.copy_from_slice(&numbers.map(u32::to_ne_bytes).concat());
    Ok(())
}

/// Fills the maps.
pub(super) fn fill(object: &Object, tables: &Tables) -> Result<(), CarrierError> {
    let functions = tables.functions.iter().map(|function| {
        [function.begin, function.end, function.class.into(), 0].map(u32::to_ne_bytes).concat()
    });
    let rows = tables.rows.iter().map(|row| [row.begin, row.rule()].map(u32::to_ne_bytes).concat());
    put(object, FUNCTIONS, &functions.collect::<Vec<_>>())?;
    put(object, ROWS, &rows.collect::<Vec<_>>())
}

fn put(object: &Object, name: &'static str, values: &[Vec<u8>]) -> Result<(), CarrierError> {
    if values.is_empty() {
        return Ok(());
    }
    let map = carrier::map(object, name)?;
    let keys: Vec<u8> = (0..values.len() as u32).flat_map(u32::to_ne_bytes).collect();
    let (none, count) = (MapFlags::ANY, values.len() as u32);
    map.update_batch(&keys, &values.concat(), count, none, none).map_err(kernel_error(WHAT))
}
