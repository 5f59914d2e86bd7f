#![allow(missing_docs)]
#[test] fn facts() { for f in waggle_probes::kernel::facts() { println!("{:<22} {:?} | {} | {:?}", f.name, f.state, f.why, f.remedy); } 
 for s in waggle_probes::target::discover::servers(std::path::Path::new("/proc")) { println!("{s:?}\n  {:?}", waggle_probes::target::discover::describe(std::path::Path::new("/proc"), s.pid)); } }
