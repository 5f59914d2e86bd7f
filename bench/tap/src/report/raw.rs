//! Every window as a line.

use std::fmt::Write;

use crate::windows::Window;

/// The windows as CSV.
pub(super) fn table(windows: &[Window]) -> String {
    let mut text = String::from(
        "block,arm,load,on,seconds,statements,captured,server_ns,agent_ns,lost,steal_ticks,void\n",
    );
    for window in windows {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{},{},\"{}\",{},{:.6},{},{},{},{},{},{},{}",
            window.block,
            window.arm.name(),
            window.load.name(),
            u8::from(window.on),
            window.seconds,
            window.statements,
            window.captured,
            window.server_ns,
            window.agent_ns,
            window.lost,
            window.steal_ticks,
            u8::from(window.void),
        );
    }
    text
}
