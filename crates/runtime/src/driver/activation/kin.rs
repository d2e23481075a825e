//! What a step means for other Runs, and for how the Run is listed.

use super::Activation;
use loopd_kernel::machine::Step;
use loopd_store::Write;

impl Activation {
    /// True while a child of the Run is driven here, or is about to be: the Run stays in memory to hear of it.
    pub(super) fn has_children_here(&self) -> bool {
        let family = self.signals.family.as_ref();
        family.is_some_and(|family| self.machine.projection().children().any(|(_, child)| family.is_here(child.run)))
    }

    /// True while a parent stays in memory for this Run, which waits for nothing but a time: nobody else would wake it.
    pub(super) fn is_awaited_here(&self) -> bool {
        if self.signals.family.as_ref().is_none_or(|family| !family.is_here(self.run())) {
            return false;
        }
        let waits = self.machine.projection().waits();
        waits.questions.is_empty() && waits.signals.is_empty()
    }

    /// Where the definition of this Run was found is where its children look for files as well.
    pub(super) fn hand_down(&self, writes: &mut [Write]) {
        for write in writes {
            if let Write::CreateRun(row) = write {
                row.origin = self.program.found_at().map(Into::into);
            }
        }
    }

    /// True when a step brings a child to be driven here, for which this Run then stays.
    pub(super) fn brings_up(&self, step: &Step) -> bool {
        self.signals.family.is_some() && (!step.births.is_empty() || step.letters.iter().any(|letter| letter.kin))
    }

    /// The children that a step gave birth to, or had something to tell, are driven here, unless somebody claims them
    /// anyway.
    pub(super) fn raise(&self, step: &Step) {
        let Some(family) = &self.signals.family else { return };
        let born = step.births.iter().map(|birth| birth.child.run);
        let told = step.letters.iter().filter(|letter| letter.kin).map(|letter| letter.to);
        for child in born.chain(told).filter(|child| !family.is_here(*child)) {
            family.raise(child, self.run());
        }
    }

    /// What lists and claims say of the Run's definition from this step on.
    pub(super) fn definition_writes(&self, step: &Step) -> Vec<Write> {
        if !step.definition_changed {
            return Vec::new();
        }
        let (projection, definition) = (self.machine.projection(), self.program.definition().definition());
        let (run, version, digest) = (projection.run, projection.version.clone(), projection.definition);
        let mut writes = vec![Write::ChangeDefinition { run, version, definition: digest }];
        if !definition.is_empty() {
            writes.push(Write::PutBlob { digest, bytes: definition.into() });
        }
        writes
    }
}
