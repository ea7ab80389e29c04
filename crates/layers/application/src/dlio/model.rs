//! Files of a checkpoint of a model, as DLIO's `checkpointing/base_checkpointing.py` shares them out to ranks.

use driver::Error;

use super::keys::{Values, refused};

/// Largest number of a shape: layers, sizes of a transformer, ranks.
const SHAPE_MAX: i64 = 1 << 24;
/// Most bytes of a file.
const BYTES_MAX: i64 = 1 << 44;
/// Bytes of a model where a workload says nothing, as DLIO has it.
const MODEL_BYTES: i64 = 10_240;

/// Files of one kind that a rank writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Files {
    /// Kind, in names.
    pub(super) kind: &'static str,
    /// How many a rank writes.
    pub(super) count: u64,
    /// Bytes of each.
    pub(super) bytes: u64,
}

/// Ranks that write the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Name; empty where all that write do the same.
    pub(super) name: &'static str,
    /// Ranks of it.
    pub(super) ranks: u64,
    /// Their files, in the order in which they are written.
    pub(super) files: Vec<Files>,
}

impl Part {
    fn new(name: &'static str, ranks: u64, files: &[(&'static str, u64, u64)]) -> Self {
        let files = files.iter().filter(|(_, count, bytes)| *count > 0 && *bytes > 0);
        Self { name, ranks, files: files.map(|&(kind, count, bytes)| Files { kind, count, bytes }).collect() }
    }
}

/// Shape of a transformer, and how it is shared out.
struct Shape {
    hidden: u64,
    vocabulary: u64,
    feed_forward: u64,
    /// Columns of keys and values.
    key_value: u64,
    layers: u64,
    tensor: u64,
    pipeline: u64,
    data: u64,
    zero_stage: u64,
    model_bytes: u64,
    /// Bytes of a parameter, and of a value of the optimizer.
    of_model: u64,
    of_optimizer: u64,
}

fn shape(values: &Values, name: &str, default: i64) -> Result<u64, Error> {
    values.whole(name, default, (1, SHAPE_MAX)).map(|number| number as u64)
}

/// Bytes of a value of a type.
fn width(values: &Values, name: &str, default: &str) -> Result<u64, Error> {
    match values.word(name, default).as_str() {
        "fp32" | "float32" => Ok(4),
        "fp16" | "float16" | "bf16" | "bfloat16" => Ok(2),
        "fp8" | "int8" | "uint8" => Ok(1),
        other => Err(refused(format!("{name}={other:?} is not valid"), "fp32, fp16, bf16, fp8 or int8")),
    }
}

/// The parts of a checkpoint of so many ranks.
///
/// # Errors
/// Shapes that cannot be shared out to them.
pub(super) fn parts(values: &Values, ranks: u64) -> Result<Vec<Part>, Error> {
    let model = values.whole("model.model_size_bytes", MODEL_BYTES, (0, BYTES_MAX))? as u64;
    let layers = values.whole("model.num_layers", -1, (-1, SHAPE_MAX))?;
    let tensor = shape(values, "model.parallelism.tensor", 1)?;
    let pipeline = shape(values, "model.parallelism.pipeline", 1)?;
    if !ranks.is_multiple_of(tensor * pipeline) {
        let given = format!(
            "{ranks} accelerators are not a multiple of {tensor} (tensor) x {pipeline} (pipeline) model parts"
        );
        return Err(refused(given, format!("--accelerators {}, or a multiple", tensor * pipeline)));
    }
    let (groups, parameters) =
        (values.list("model.optimization_groups")?, values.list("model.layer_parameters")?);
    // Each group has two tensors of its size, and all together have one more.
    let groups_bytes = groups.iter().fold(0u64, |sum, group| sum.saturating_add(*group)).saturating_mul(3);
    let parts = if layers > 0 && parameters.is_empty() {
        transformer(
            &transformer_shape(values, ranks, (layers as u64, tensor, pipeline), model)?,
            groups_bytes,
        )?
    } else {
        let layer = parameters.iter().fold(0u64, |sum, one| sum.saturating_add(one / tensor));
        let files = u64::try_from(layers).unwrap_or(0);
        let writers = match values.word("checkpoint.type", "rank_zero").as_str() {
            "rank_zero" => 1,
            "all_ranks" | "independent" => ranks,
            other => {
                let given = format!("checkpoint.type={other:?} is not valid");
                return Err(refused(given, "rank_zero, all_ranks or independent"));
            }
        };
        vec![Part::new(
            "",
            writers,
            &[("state", 1, model), ("optim", 1, groups_bytes), ("layer", files, layer)],
        )]
    };
    let parts: Vec<Part> =
        parts.into_iter().filter(|part| part.ranks > 0 && !part.files.is_empty()).collect();
    if parts.is_empty() {
        return Err(refused(
            "the size of the checkpoints is 0".to_owned(),
            "model.model_size_bytes, or model.num_layers",
        ));
    }
    Ok(parts)
}

fn transformer_shape(
    values: &Values,
    ranks: u64,
    (layers, tensor, pipeline): (u64, u64, u64),
    model_bytes: u64,
) -> Result<Shape, Error> {
    let hidden = shape(values, "model.transformer.hidden_size", 2048)?;
    let heads = shape(values, "model.transformer.num_attention_heads", 32)?;
    let shape = Shape {
        hidden,
        vocabulary: shape(values, "model.transformer.vocab_size", 32_000)?,
        feed_forward: shape(values, "model.transformer.ffn_hidden_size", 8192)?,
        key_value: hidden / heads * shape(values, "model.transformer.num_kv_heads", 8)?,
        layers,
        tensor,
        pipeline,
        data: ranks / (tensor * pipeline),
        zero_stage: values.whole("model.parallelism.zero_stage", 0, (0, 3))? as u64,
        model_bytes,
        of_model: width(values, "model.model_datatype", "fp16")?,
        of_optimizer: width(values, "model.optimizer_datatype", "fp32")?,
    };
    if !layers.is_multiple_of(pipeline) {
        let given = format!("{layers} layers do not divide evenly among {pipeline} pipeline stages");
        return Err(refused(given, "model.num_layers that is a multiple of model.parallelism.pipeline"));
    }
    if shape.zero_stage == 3 && pipeline > 1 {
        return Err(refused(
            "ZeRO stage 3 does not support a pipeline".to_owned(),
            "model.parallelism.pipeline=1",
        ));
    }
    Ok(shape)
}

impl Shape {
    /// Parameters of a layer: those of norms, and those that tensor parallelism shares out.
    fn layer(&self) -> (u64, u64) {
        let (h, ffn) = (self.hidden, self.feed_forward);
        (2 * h, h * (h + 2 * self.key_value) + h * h + 3 * h * ffn)
    }

    /// Parameters of the whole model.
    fn parameters(&self) -> u64 {
        let (norms, shared) = self.layer();
        2 * self.vocabulary * self.hidden + (norms + shared) * self.layers + self.hidden
    }

    /// Bytes of the file of a layer on a rank, of the embedding (and of the head), and of the last norm.
    fn layer_bytes(&self, shards: u64) -> (u64, u64, u64) {
        let (norms, shared) = self.layer();
        (
            (norms + shared / self.tensor) / shards * self.of_model,
            self.hidden * self.vocabulary / shards * self.of_model,
            self.hidden / shards * self.of_model,
        )
    }

    /// Bytes of the state of the optimizer on a rank.
    fn optimizer_bytes(&self) -> u64 {
        let shards = match self.zero_stage {
            0 => self.tensor * self.pipeline,
            _ => self.tensor * self.pipeline * self.data,
        };
        3 * (self.parameters() / shards + 5 * self.hidden) * self.of_optimizer
    }
}

/// Parts of a transformer: the first ranks of data parallelism write layers; the rest their own states alone.
fn transformer(shape: &Shape, groups_bytes: u64) -> Result<Vec<Part>, Error> {
    let optimizer = if groups_bytes > 0 { groups_bytes } else { shape.optimizer_bytes() };
    let (model, others) = (("model", 1, shape.model_bytes), u64::from(shape.zero_stage > 0));
    if shape.zero_stage == 3 {
        let (layer, embedding, norm) = shape.layer_bytes(shape.data);
        let states = layer * shape.layers + 2 * embedding + norm;
        let ranks = shape.tensor * shape.data;
        return Ok(vec![Part::new("", ranks, &[model, ("optim", 1, optimizer), ("state", 1, states)])]);
    }
    let (layer, embedding, norm) = shape.layer_bytes(1);
    let layers = ("layer", shape.layers / shape.pipeline, layer);
    let (own, rest) = (("optim", 1, optimizer), ("optim", others, optimizer));
    let (embed, head, last) = (("embed", 1, embedding), ("head", 1, embedding), ("norm", 1, norm));
    let rest = Part::new("rest", shape.tensor * shape.pipeline * (shape.data - 1), &[model, rest]);
    if shape.pipeline == 1 {
        return Ok(vec![Part::new("first", shape.tensor, &[model, own, embed, layers, head, last]), rest]);
    }
    Ok(vec![
        Part::new("first", shape.tensor, &[model, own, embed, layers]),
        Part::new("middle", shape.tensor * (shape.pipeline - 2), &[model, own, layers]),
        Part::new("last", shape.tensor, &[model, own, layers, head, last]),
        rest,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, ranks: u64) -> Result<Vec<Part>, String> {
        parts(&Values::read(text).unwrap(), ranks).map_err(|error| error.to_string())
    }

    fn bytes(parts: &[Part]) -> u64 {
        let of =
            |part: &Part| part.files.iter().map(|files| files.count * files.bytes).sum::<u64>() * part.ranks;
        parts.iter().map(of).sum()
    }

    const LLAMA: &str = "model: {model_size_bytes: 0, num_layers: 32, parallelism: {tensor: 1, pipeline: 1, zero_stage: 3}, \
        transformer: {vocab_size: 128256, hidden_size: 4096, ffn_hidden_size: 14336, num_attention_heads: 32, num_kv_heads: 8}}";

    #[test]
    fn an_8_billion_model_has_the_published_size() {
        // MLPerf Storage: 105 GB (in GiB, 98) of checkpoint: 14 bytes a parameter of 8.03 billion.
        for ranks in [1, 8] {
            let bytes = bytes(&told(LLAMA, ranks).unwrap()) as f64;
            assert!((bytes / (14.0 * 8.03e9) - 1.0).abs() < 0.01, "{bytes}");
        }
        let shared = bytes(&told(&LLAMA.replace("zero_stage: 3", "zero_stage: 1"), 8).unwrap()) as f64;
        assert!((shared / (14.0 * 8.03e9) - 1.0).abs() < 0.01, "{shared}");
    }

    #[test]
    fn ranks_share_layers_by_tensor_and_pipeline() {
        let text = "model: {model_size_bytes: 100, num_layers: 8, parallelism: {tensor: 2, pipeline: 4}, \
                    transformer: {vocab_size: 64, hidden_size: 32, ffn_hidden_size: 64, num_kv_heads: 32}}";
        let parts = told(text, 16).unwrap();
        let ranks: Vec<(&str, u64)> = parts.iter().map(|part| (part.name, part.ranks)).collect();
        assert_eq!(ranks, [("first", 2), ("middle", 4), ("last", 2), ("rest", 8)]);
        let first: Vec<&str> = parts[0].files.iter().map(|files| files.kind).collect();
        assert_eq!(first, ["model", "optim", "embed", "layer"]);
        assert_eq!(parts[3].files.len(), 1, "without ZeRO, one replica of the optimizer is written");
        assert_eq!(
            parts[1].files[2],
            Files { kind: "layer", count: 2, bytes: (64 + (4 * 32 * 32 + 3 * 32 * 64) / 2) * 2 }
        );
    }

    #[test]
    fn states_of_older_files_and_faults() {
        let old = "model: {model_size: 1000, num_layers: 3, optimization_groups: [10, 20], layer_parameters: [7, 8]}\n\
                   checkpoint: {type: independent}";
        assert_eq!(bytes(&told(old, 2).unwrap()), 2 * (1000 + 3 * 30 + 3 * 15));
        for (text, ranks, said) in [
            (
                "model: {num_layers: 8, parallelism: {tensor: 2, pipeline: 3}}",
                6,
                "multiple of model.parallelism.pipeline",
            ),
            ("model: {num_layers: 8, parallelism: {tensor: 2}}", 3, "--accelerators 2"),
            ("model: {num_layers: 8, parallelism: {pipeline: 2, zero_stage: 3}}", 2, "pipeline=1"),
            ("model: {num_layers: 8, model_datatype: fp7}", 1, "fp16"),
            ("model: {model_size_bytes: 0}", 1, "size of the checkpoints is 0"),
            ("checkpoint: {type: some}", 1, "rank_zero, all_ranks"),
            ("model: {optimization_groups: [a]}", 1, "a list of whole numbers"),
        ] {
            let error = told(text, ranks).expect_err(said);
            assert!(error.contains(said) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
