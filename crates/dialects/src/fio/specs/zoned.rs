//! `zonemode=zbd`: what is done in the zones of a zoned block device.

use super::Site;
use crate::fio::draft::Access;
use crate::fio::fault::Fault;

impl Site<'_> {
    /// Blocks, mix and order of a job in zones: their positions follow from write pointers.
    pub(super) fn zoned_shape(&mut self, access: Access) -> Result<(), Fault> {
        let draft = self.draft;
        let distribution = draft.random_distribution.as_ref().is_some_and(|text| !text.is_empty());
        let wrong = [
            (
                "rw",
                access.run > 1 || access.gap_bytes != 0,
                "zonemode=zbd continues at write pointers: leave out the part after the colon",
            ),
            (
                "rw",
                access.operation.is_pair(),
                "zonemode=zbd resets the zones that it trims: use trim, write or randwrite",
            ),
            (
                "percentage_random",
                draft.percentage_random.is_some(),
                "zonemode=zbd continues at write pointers: leave it out",
            ),
            (
                "random_distribution",
                distribution,
                "with zonemode=zbd, zones are selected uniformly: leave it out",
            ),
            (
                "ba",
                draft.ba.is_some(),
                "with zonemode=zbd, write pointers determine the offsets: leave it out",
            ),
            (
                "verify",
                draft.verifies(),
                "with zonemode=zbd, full zones are rewritten from their start, so earlier blocks are lost; verify with rw=write and zonemode=none on a conventional device",
            ),
        ];
        if let Some((key, _, message)) = wrong.into_iter().find(|(_, is_wrong, _)| *is_wrong) {
            return Err(Fault::of(key, message));
        }
        let (key, text) = (self.blocks.key, self.blocks.text.clone());
        // fio demands blocks as large as zones of trims; here a trim is a zone whatever is said.
        if !matches!(
            access.operation,
            workload::spec::Operation::Discard | workload::spec::Operation::RandDiscard
        ) {
            self.set(key, "block-size", &text)?;
        }
        if self.operation.is_mixed() {
            let percent = draft.rwmixread.unwrap_or(50);
            self.set("rwmixread", "mix", &percent.to_string())?;
        }
        if self.operation.is_random() {
            self.set("random_distribution", "pattern", "uniform")?;
        }
        Ok(())
    }

    /// The options of zones, as `--zones` takes them.
    pub(super) fn zones_of_device(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        let mut text = "zbd,round".to_owned();
        let numbers = [
            ("size", draft.zonesize),
            ("capacity", draft.zonecapacity),
            ("skip", draft.zoneskip),
            ("max-open", draft.max_open_zones),
            ("thread-max-open", draft.job_max_open_zones),
        ];
        for (name, number) in
            numbers.into_iter().filter_map(|(name, number)| Some((name, number.filter(|n| *n > 0)?)))
        {
            text += &format!(",{name}={number}");
        }
        for (name, is_on) in
            [("read-beyond-wp", draft.read_beyond_wp), ("ignore-limits", draft.ignore_zone_limits)]
        {
            if is_on == Some(true) {
                text += &format!(",{name}");
            }
        }
        // fio resets nothing early without a frequency, whatever the threshold.
        if let Some(frequency) = draft.zone_reset_frequency.filter(|frequency| *frequency > 0.0) {
            let threshold = draft.zone_reset_threshold.unwrap_or(0.0);
            text += &format!(",reset-threshold={threshold},reset-frequency={frequency}");
        }
        self.set("zonemode", "zones", &text)
    }
}
