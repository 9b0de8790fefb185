//! Gives a target's laws every input that is kept for it.

use std::path::Path;

/// Every file of `fuzz/corpus/TARGET` and of `fuzz/crashes/TARGET`, which holds every past finding; the name of the one that
/// breaks a law is printed. `root` is the project's folder.
pub(crate) fn each(root: &Path, target: &str, law: fn(&[u8])) {
    let mut files: Vec<_> = ["corpus", "crashes"]
        .iter()
        .filter_map(|folder| std::fs::read_dir(root.join("fuzz").join(folder).join(target)).ok())
        .flat_map(|entries| entries.map(|entry| entry.expect("a file").path()))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "nothing is kept for {target}");
    for file in files {
        let data = std::fs::read(&file).expect("a file that can be read");
        println!("{}", file.display());
        law(&data);
    }
}
