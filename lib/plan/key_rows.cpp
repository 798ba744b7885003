#include "plan/key_rows.hpp"

#include <limits>

#include "plan/field.hpp"

// A row of the table stays together.
// clang-format off

namespace vpp {

namespace {

using detail::betas_field;
using detail::chunks_field;
using detail::field;
using detail::files_field;
using detail::memory_limit_field;
using enum KeyType;

using Rows = std::vector<Key>;
using Texts = std::vector<std::string>;
using Sides = std::vector<int64_t>;
using Numbers = std::vector<double>;

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr Range kFlag01 = {0, 1};
constexpr Range kBelowOne = {.low = 0, .high = 1, .without_high = true};
constexpr Range kPositive = {.low = 0, .without_low = true};
constexpr Range kFromZero = {0, kUnbounded};
// Numbers that are float32 when they are used, where 0 and infinity would be other numbers than those of the plan.
constexpr Range kFloat = {-3.4e38, 3.4e38};
constexpr Range kPositiveFloat = {1e-37, 3.4e38};  // and so are their reciprocals
constexpr Range kMeasure = {-1e9, 1e9};
constexpr Range kCount = {0, 1e15};

/// A number of model.init: where another kind fills it has no value, and the resolved text leaves it out.
template <double InitRule::*number>
PlanField init_number() {
    return {[](const Plan& plan, size_t entry) -> std::optional<Value> {
                const InitRule& rule = plan.model.init.at(entry);
                constexpr bool kIsOfNormal = number == &InitRule::mean || number == &InitRule::std;
                if (rule.kind != (kIsOfNormal ? "normal" : "uniform")) return std::nullopt;
                return Value(rule.*number);
            },
            field<&Plan::model, &ModelPlan::init, number>().set};
}

Rows model_rows() {
    // Not with [loss]: then it has no value, and the resolved text leaves it out.
    const PlanField loss_output = {[](const Plan& plan, size_t) -> std::optional<Value> {
                                   if (plan.loss) return std::nullopt;
                                   return Value(int64_t{plan.model.loss_output});
                               },
                               field<&Plan::model, &ModelPlan::loss_output>().set};
    return {
        {.name = "model.file", .type = Path, .sentence = "The TorchScript file of the model.",
         .field = field<&Plan::model, &ModelPlan::file>(), .required = true, .required_unless = "pipeline.stage",
         .example = "model.pt"},
        {.name = "model.eval_file", .type = Path,
         .sentence = "The same model traced in eval mode, for evaluations, since a trace has one mode; weights are "
                     "those of model.file.",
         .field = field<&Plan::model, &ModelPlan::eval_file>(), .default_note = "model.file, in eval mode",
         .example = "model_eval.pt"},
        {.name = "model.inputs", .type = TextList,
         .sentence = "Data fields in the order of forward's arguments; several may take the same one.",
         .field = field<&Plan::model, &ModelPlan::inputs>(), .default_note = "the arguments' own names",
         .example = Texts{"tokens", "targets"}},
        {.name = "model.loss_output", .type = Integer,
         .sentence = "Which output of forward is the loss, counted from 0; not with [loss].", .field = loss_output,
         .range = {0, 1000}},
        {.name = "model.loss_reduction", .type = Choice,
         .sentence = "How a step's loss is formed: mean, of the means of its microbatches; sum; target_mean, the sum "
                     "over its targets that count, by their number (of cross_entropy or nll, in [loss] or in forward).",
         .field = field<&Plan::model, &ModelPlan::loss_reduction>(), .choices = {"mean", "sum", "target_mean"}},
        {.name = "model.init_from", .type = Path,
         .sentence = "Weights to start from: a checkpoint's folder, a safetensors file, or an index or folder of such. "
                     "What it has goes before model.init, which fills what it lacks.",
         .field = field<&Plan::model, &ModelPlan::init_from>(), .default_note = "those of the model file",
         .example = "runs/gpt/checkpoints/step-00000200"},
        {.name = "model.freeze", .type = TextList,
         .sentence = "Globs over parameters that are not trained; \"!GLOB\" takes out again what globs before it name.",
         .field = field<&Plan::model, &ModelPlan::freeze>(), .example = Texts{"*embedding*", "blocks.0.*"}},
        {.name = "model.eval_modules", .type = TextList,
         .sentence = "Globs over submodules that stay in eval mode in training, with all that is in them.",
         .field = field<&Plan::model, &ModelPlan::eval_modules>(), .example = Texts{"teacher", "*.bn?"}},
        {.name = "model.trust_sha256", .type = TextList,
         .sentence = "SHA-256 of the model files that may use operators outside the allow-list.",
         .field = field<&Plan::model, &ModelPlan::trust_sha256>(),
         .example = Texts{"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}},
        {.name = "model.init", .type = TableList,
         .sentence = "Parameters that are filled from the seed, unless model.init_from has them; the first table that "
                     "matches counts."},
        {.name = "model.init.match", .type = TextList, .sentence = "Globs over parameter names.",
         .field = field<&Plan::model, &ModelPlan::init, &InitRule::match>(), .required = true,
         .example = Texts{"*.weight"}},
        {.name = "model.init.kind", .type = Choice, .sentence = "What the parameters are filled with.",
         .field = field<&Plan::model, &ModelPlan::init, &InitRule::kind>(), .required = true,
         .choices = {"normal", "uniform", "zeros", "ones"}, .example = "normal"},
        {.name = "model.init.mean", .type = Number, .sentence = "normal: the mean.",
         .field = init_number<&InitRule::mean>(), .range = kMeasure,
         .default_note = "0", .example = 0.0},
        {.name = "model.init.std", .type = Number, .sentence = "normal: the standard deviation.",
         .field = init_number<&InitRule::std>(), .range = kFromZero, .default_note = "1",
         .example = 0.02},
        {.name = "model.init.low", .type = Number, .sentence = "uniform: the smallest value.",
         .field = init_number<&InitRule::low>(), .range = kMeasure,
         .default_note = "0", .example = -0.1},
        {.name = "model.init.high", .type = Number, .sentence = "uniform: no value reaches it.",
         .field = init_number<&InitRule::high>(), .range = kMeasure,
         .default_note = "1", .example = 0.1},
    };
}

Rows loss_rows() {
    return {
        {.name = "loss.kind", .type = Name, .sentence = "The loss that is appended when forward does not return one.",
         .field = field<&Plan::loss, &LossPlan::kind>(), .required = true, .names = &Names::losses,
         .example = "cross_entropy"},
        {.name = "loss.input", .type = Integer, .sentence = "Which output of forward is compared, counted from 0.",
         .field = field<&Plan::loss, &LossPlan::input>(), .range = {0, 1000}},
        {.name = "loss.target", .type = Text, .sentence = "The data field that it is compared with.",
         .field = field<&Plan::loss, &LossPlan::target>(), .required = true, .example = "label"},
        {.name = "loss.ignore_index", .type = Integer,
         .sentence = "Targets of this value do not count; cross_entropy and nll.",
         .field = field<&Plan::loss, &LossPlan::ignore_index>()},
        {.name = "loss.class_dim", .type = Integer,
         .sentence = "Dimension of the classes: 1, or -1, as language models have it; cross_entropy and nll.",
         .field = field<&Plan::loss, &LossPlan::class_dim>(), .range = {-1, 1}, .example = -1},
        {.name = "loss.label_smoothing", .type = Number, .sentence = "Label smoothing; cross_entropy.",
         .field = field<&Plan::loss, &LossPlan::label_smoothing>(), .range = kFlag01, .example = 0.1},
    };
}

Rows data_rows() {
    return {
        {.name = "data.kind", .type = Name, .sentence = "What the data files hold.",
         .field = field<&Plan::data, &DataPlan::kind>(), .required = true, .names = &Names::datasets,
         .example = "tokens"},
        {.name = "data.train", .type = Files,
         .sentence = "Training data: a list of files; for arrays and idx a table field = file, of arrays also "
                     "\"file.npz:array\".",
         .field = files_field<&DataPlan::train, &DataPlan::train_fields>(), .default_note = "none",
         .example = Texts{"train.bin"}},
        {.name = "data.val", .type = Files, .sentence = "Validation data, in the form of data.train.",
         .field = files_field<&DataPlan::val, &DataPlan::val_fields>(), .default_note = "none",
         .example = Texts{"val.bin"}},
        {.name = "data.fields", .type = TextTable,
         .sentence = "Synthetic data: field = dtype[shape], for integers with a bound: \"int64[] < 10\".",
         .field = field<&Plan::data, &DataPlan::fields>(),
         .example = NamedTexts{{"image", "float32[3, 32, 32]"}, {"label", "int64[] < 10"}}},
        {.name = "data.samples", .type = Integer, .sentence = "Synthetic data: number of samples.",
         .field = field<&Plan::data, &DataPlan::samples>(), .range = kCount, .example = int64_t{1000}},
        {.name = "data.sequence_length", .type = Integer, .sentence = "Tokens and text: tokens of one sample.",
         .field = field<&Plan::data, &DataPlan::sequence_length>(), .range = {0, 1e9}, .example = int64_t{128}},
        {.name = "data.token_dtype", .type = Choice,
         .sentence = "Tokens: element type; auto reads llm.c headers and Megatron indexes, else takes uint16.",
         .field = field<&Plan::data, &DataPlan::token_dtype>(), .choices = {"auto", "uint16", "uint32"}},
        {.name = "data.shuffle", .type = Boolean, .sentence = "Whether each epoch has its own order of samples.",
         .field = field<&Plan::data, &DataPlan::shuffle>()},
        {.name = "data.weights", .type = NumberList,
         .sentence = "How often samples come from each file of train, relative to the others.",
         .field = field<&Plan::data, &DataPlan::weights>(), .range = kPositive,
         .default_note = "each sample once an epoch", .example = Numbers{0.7, 0.3}},
        {.name = "data.val_split", .type = Number,
         .sentence = "Share of the samples of train that is held out for validation, in place of val; 0 = none.",
         .field = field<&Plan::data, &DataPlan::val_split>(), .range = {0, 0.5}, .example = 0.1},
        {.name = "data.documents", .type = Choice,
         .sentence = "Tokens with an index: documents joined to one run of tokens, or apart, so that no sample has "
                     "tokens of two.",
         .field = field<&Plan::data, &DataPlan::documents>(), .choices = {"joined", "apart"}},
        {.name = "data.read_ahead_bytes", .type = Integer,
         .sentence = "How much of its coming data a rank reads while it computes, in a training and in an evaluation: "
                     "at most a step, at least what one forward pass takes; 0 = it is read when it is needed.",
         .field = field<&Plan::data, &DataPlan::read_ahead_bytes>(), .range = {0, 1e15}},
    };
}

template <auto Member>
PlanField transform_field() {
    return field<&Plan::data, &DataPlan::transforms, Member>();
}

Rows transform_rows() {
    constexpr Range kSide = {1, 65536};
    return {
        {.name = "data.transform", .type = TableList,
         .sentence = "Changes of fields when they are read; crops and flips are random in training alone."},
        {.name = "data.transform.field", .type = Text, .sentence = "The field that is changed.",
         .field = transform_field<&TransformPlan::field>(), .required = true, .example = "image"},
        {.name = "data.transform.resize", .type = IntegerList,
         .sentence = "[height, width] that pictures, [..., height, width], are brought to, bilinear.",
         .field = transform_field<&TransformPlan::resize>(), .range = kSide, .list_size = 2, .default_note = "none",
         .example = Sides{32, 32}},
        {.name = "data.transform.crop", .type = IntegerList,
         .sentence = "[height, width] of what is taken of a picture: anywhere in training, else the middle.",
         .field = transform_field<&TransformPlan::crop>(), .range = kSide, .list_size = 2, .default_note = "none",
         .example = Sides{28, 28}},
        {.name = "data.transform.pad", .type = Integer,
         .sentence = "Zeros on each side of a picture that a crop in training may take in.",
         .field = transform_field<&TransformPlan::pad>(), .range = {0, 65536}, .example = int64_t{4}},
        {.name = "data.transform.flip", .type = Number,
         .sentence = "How often left and right of a picture are exchanged in training.",
         .field = transform_field<&TransformPlan::flip>(), .range = kFlag01, .example = 0.5},
        {.name = "data.transform.scale", .type = Number,
         .sentence = "What values are multiplied by; 0.00392156862745098 (1/255) makes bytes 0 to 1.",
         .field = transform_field<&TransformPlan::scale>(), .range = kFloat,
         .range_reason = "not between -1e-37 and 1e-37", .example = 0.00392156862745098},
        {.name = "data.transform.mean", .type = NumberList,
         .sentence = "What is subtracted: one number, or one for each channel (entry of the field's first dim).",
         .field = transform_field<&TransformPlan::mean>(), .range = kFloat, .default_note = "none",
         .example = Numbers{0.485, 0.456, 0.406}},
        {.name = "data.transform.std", .type = NumberList, .sentence = "What is divided by then, as many as of mean.",
         .field = transform_field<&TransformPlan::deviation>(), .range = kPositiveFloat, .default_note = "none",
         .example = Numbers{0.229, 0.224, 0.225}},
    };
}

Rows mesh_rows() {
    constexpr Range kOnlyOne = {1, 1};
    return {
        {.name = "mesh.pp", .type = Integer, .sentence = "Ranks on the PP axis: physical stages of the pipeline.",
         .field = field<&Plan::mesh, &MeshPlan::pp>(), .range = {1, 65536},
         .default_note = "pipeline.num_stages, else [[pipeline.stage]] / virtual_chunks, else world / (dp x tp)",
         .example = int64_t{4}},
        {.name = "mesh.dp", .type = Integer, .sentence = "Ranks on the DP axis: replicas of the pipeline.",
         .field = field<&Plan::mesh, &MeshPlan::dp>(), .range = {1, 65536},
         .default_note = "1, or what the world leaves when mesh.pp or pipeline.num_stages is named",
         .example = int64_t{2}},
        {.name = "mesh.tp", .type = Integer, .sentence = "Ranks on the TP axis.",
         .field = field<&Plan::mesh, &MeshPlan::tp>(), .range = kOnlyOne,
         .range_reason = "tensor parallelism is not built yet", .default_note = "1", .example = int64_t{1}},
        {.name = "mesh.device", .type = Name,
         .sentence = "Where the stages run; auto is cuda where a rank sees a card.",
         .field = field<&Plan::mesh, &MeshPlan::device>(), .names = &Names::devices,
         .planned = {{"cuda", "is not compiled in: VPP_CUDA"}}},
        {.name = "mesh.threads", .type = Integer, .sentence = "Intra-op threads of a rank; part of the contract.",
         .field = field<&Plan::mesh, &MeshPlan::threads>(), .range = {1, 1024}, .example = int64_t{4}},
        {.name = "mesh.transport", .type = Name,
         .sentence = "What carries values between ranks; auto is nccl where every rank has a card of its own.",
         .field = field<&Plan::mesh, &MeshPlan::transport>(), .names = &Names::transports,
         .planned = {{"nccl", "is not compiled in: VPP_CUDA"}}},
        {.name = "mesh.zero1", .type = Boolean, .sentence = "Whether replicas share the optimizer state among them.",
         .field = field<&Plan::mesh, &MeshPlan::zero1>(), .example = true},
        {.name = "mesh.bucket_bytes", .type = Integer,
         .sentence = "Size of the pieces in which the gradients of replicas are summed.",
         .field = field<&Plan::mesh, &MeshPlan::bucket_bytes>(), .range = {1024, 1e12}},
    };
}

Rows split_rows() {
    // Not with stages of the plan's own: then it has no value, and the resolved text leaves it out.
    const PlanField split_method = {[](const Plan& plan, size_t) -> std::optional<Value> {
                                        if (plan.pipeline.is_by_hand()) return std::nullopt;
                                        return Value(plan.pipeline.split_method);
                                    },
                                    field<&Plan::pipeline, &PipelinePlan::split_method>().set};
    return {
        {.name = "pipeline.mode", .type = Choice,
         .sentence = "Cut the graph of one model, or join a module per stage.",
         .field = field<&Plan::pipeline, &PipelinePlan::mode>(), .choices = {"GRAPH_EAGER", "MANUAL_EAGER"}},
        {.name = "pipeline.split_method", .type = Name, .sentence = "How the model is cut into stages.",
         .field = split_method, .names = &Names::split_methods},
        {.name = "pipeline.num_stages", .type = Integer, .sentence = "Physical stages: ranks on the PP axis.",
         .field = field<&Plan::pipeline, &PipelinePlan::num_stages>(), .range = {1, 65536}, .default_note = "mesh.pp",
         .example = int64_t{4}},
        {.name = "pipeline.virtual_chunks", .type = Integer,
         .sentence = "Stages per rank; \"auto\" with schedule_type AUTO, which chooses.", .field = chunks_field(),
         .range = {1, 4096}, .word = "auto", .example = int64_t{2}},
        {.name = "pipeline.split_points", .type = TextList,
         .sentence = "MANUAL: the last unit of each part; pp or pp x virtual_chunks of them, the last may be left out.",
         .field = field<&Plan::pipeline, &PipelinePlan::split_points>(),
         .example = Texts{"blocks.1", "blocks.3", "blocks.5"}},
        {.name = "pipeline.uniform_split_ops", .type = Boolean, .sentence = "UNIFORM: count ops instead of units.",
         .field = field<&Plan::pipeline, &PipelinePlan::uniform_split_ops>()},
        {.name = "pipeline.smallest_unsplittable_units", .type = TextList,
         .sentence = "Submodules that are never cut: FQNs, globs, or class names.",
         .field = field<&Plan::pipeline, &PipelinePlan::smallest_unsplittable_units>(), .example = Texts{"Block"}},
    };
}

Rows schedule_rows() {
    return {
        {.name = "pipeline.schedule_type", .type = Name, .sentence = "The order of each rank's actions.",
         .field = field<&Plan::pipeline, &PipelinePlan::schedule_type>(), .names = &Names::schedules,
         .aliases = {{"SIMPLE_1F1B", "1F1B"}, {"ZERO_BUBBLE", "ZERO_BUBBLE_V"}}, .example = "INTERLEAVED_1F1B"},
        {.name = "pipeline.schedule_file", .type = Path, .sentence = "CUSTOM: the schedule as CSV.",
         .field = field<&Plan::pipeline, &PipelinePlan::schedule_file>(), .default_note = "none",
         .example = "schedule.csv"},
        {.name = "pipeline.num_microbatches", .type = Integer, .sentence = "Microbatches of a replica per step.",
         .field = field<&Plan::pipeline, &PipelinePlan::num_microbatches>(), .range = {1, 1e6},
         .default_note = "2 x pp", .example = int64_t{8}},
        {.name = "pipeline.overlap_p2p_comm", .type = Boolean,
         .sentence = "Whether ops run while messages travel; false finishes a send before the next action.",
         .field = field<&Plan::pipeline, &PipelinePlan::overlap_p2p_comm>()},
        {.name = "pipeline.cuda_graphs", .type = Boolean,
         .sentence = "On cards, whether ops are recorded in the third step and replayed from then on (CUDA graphs).",
         .field = field<&Plan::pipeline, &PipelinePlan::cuda_graphs>()},
        {.name = "pipeline.forward_only", .type = Boolean, .sentence = "The plan evaluates only (vpp eval).",
         .field = field<&Plan::pipeline, &PipelinePlan::forward_only>()},
        {.name = "pipeline.tied_gradients", .type = Choice,
         .sentence = "Sum gradients of tied parameters per microbatch, or once per step (not bitwise).",
         .field = field<&Plan::pipeline, &PipelinePlan::tied_gradients>(), .choices = {"exact", "per_step"}},
        {.name = "pipeline.deferred_batch_norm", .type = Boolean,
         .sentence = "Running statistics of batch norm take one update a step, with those of the whole batch.",
         .field = field<&Plan::pipeline, &PipelinePlan::deferred_batch_norm>()},
        {.name = "pipeline.interleave_group_size", .type = Integer,
         .sentence = "Interleaved schedules: microbatches that a chunk takes in a row.",
         .field = field<&Plan::pipeline, &PipelinePlan::interleave_group_size>(), .range = {1, 1e6},
         .default_note = "pp", .example = int64_t{4}},
        {.name = "pipeline.cost_file", .type = Path,
         .sentence = "Measured times (JSON, see vpp profile), for AUTO and schedules that look at costs.",
         .field = field<&Plan::pipeline, &PipelinePlan::cost_file>(), .default_note = "costs are taken from FLOPs",
         .example = "costs.json"},
        {.name = "pipeline.memory_limit", .type = Size,
         .sentence = "Most activations on a rank: in those of a microbatch on a full rank, from its F to its B or W, "
                     "or bytes with a unit, with what I keeps for W and the gradients at work.",
         .field = memory_limit_field(), .range = {1, 1e6}, .default_note = "what the schedule needs",
         .example = "8GiB"},
        {.name = "pipeline.search.moves", .type = Integer, .sentence = "AUTO: moves after which the search ends.",
         .field = field<&Plan::pipeline, &PipelinePlan::search, &SearchPlan::moves>(), .range = {0, 1e12}},
        {.name = "pipeline.search.seed", .type = Integer, .sentence = "AUTO: seed of the search.",
         .field = field<&Plan::pipeline, &PipelinePlan::search, &SearchPlan::seed>(), .range = kFromZero},
        {.name = "pipeline.search.objective", .type = Choice, .sentence = "AUTO: what is made short.",
         .field = field<&Plan::pipeline, &PipelinePlan::search, &SearchPlan::objective>(),
         .choices = {"makespan", "span"}},
    };
}

Rows recompute_and_stage_rows() {
    return {
        {.name = "pipeline.recompute.what", .type = Choice, .sentence = "What is computed again in backward.",
         .field = field<&Plan::pipeline, &PipelinePlan::recompute, &RecomputePlan::what>(),
         .choices = {"none", "stage", "units", "modules"}, .example = "units"},
        {.name = "pipeline.recompute.every", .type = Integer, .sentence = "units: how many make a segment.",
         .field = field<&Plan::pipeline, &PipelinePlan::recompute, &RecomputePlan::every>(), .range = {1, 1e6},
         .example = int64_t{2}},
        {.name = "pipeline.recompute.modules", .type = TextList,
         .sentence = "modules: submodules that are segments: FQNs, globs, or class names.",
         .field = field<&Plan::pipeline, &PipelinePlan::recompute, &RecomputePlan::modules>(),
         .example = Texts{"blocks.*"}},
        {.name = "pipeline.recompute.except_last", .type = Boolean,
         .sentence = "Whether the last microbatch keeps its activations.",
         .field = field<&Plan::pipeline, &PipelinePlan::recompute, &RecomputePlan::except_last>()},
        {.name = "pipeline.stage", .type = TableList, .sentence = "MANUAL_EAGER: the stages in order."},
        {.name = "pipeline.stage.name", .type = Text,
         .sentence = "The stage's own name; with a file it begins the FQNs of what is in it.",
         .field = field<&Plan::pipeline, &PipelinePlan::stages, &StagePlan::name>(), .required = true,
         .example = "lower"},
        {.name = "pipeline.stage.file", .type = Path, .sentence = "A TorchScript module for this stage.",
         .field = field<&Plan::pipeline, &PipelinePlan::stages, &StagePlan::file>(), .default_note = "none",
         .example = "lower.pt"},
        {.name = "pipeline.stage.eval_file", .type = Path,
         .sentence = "The same module traced in eval mode, for evaluations, with the weights of the stage's file.",
         .field = field<&Plan::pipeline, &PipelinePlan::stages, &StagePlan::eval_file>(),
         .default_note = "the stage's file", .example = "lower_eval.pt"},
        {.name = "pipeline.stage.modules", .type = TextList,
         .sentence = "Submodules of model.file instead of a file of its own, each called with what the one before "
                     "returns.",
         .field = field<&Plan::pipeline, &PipelinePlan::stages, &StagePlan::modules>(), .default_note = "none",
         .example = Texts{"blocks.0", "blocks.1"}},
        {.name = "pipeline.stage.inputs", .type = TextList,
         .sentence = "Data fields or outputs of earlier stages, in the order of forward's arguments.",
         .field = field<&Plan::pipeline, &PipelinePlan::stages, &StagePlan::inputs>(), .required = true,
         .example = Texts{"image"}},
        {.name = "pipeline.stage.outputs", .type = TextList,
         .sentence = "Names for what forward returns: one, or one for each part of a tuple.",
         .field = field<&Plan::pipeline, &PipelinePlan::stages, &StagePlan::outputs>(), .required = true,
         .example = Texts{"hidden"}},
    };
}

/// The values that the optimizer and each of its groups have; `Owner...` leads to the OptimizerValues.
template <auto... Owner>
Rows optimizer_value_rows(const std::string& section, const std::string& note) {
    using Values = OptimizerValues;
    return {
        {.name = section + ".lr", .type = Number, .sentence = "Learning rate before the LR schedule.",
         .field = field<Owner..., &Values::lr>(), .range = kFromZero, .default_note = note, .example = 3e-4},
        {.name = section + ".weight_decay", .type = Number, .sentence = "Weight decay.",
         .field = field<Owner..., &Values::weight_decay>(), .range = kFromZero, .default_note = note, .example = 0.1},
        {.name = section + ".betas", .type = NumberList, .sentence = "Adam and AdamW: decay of the two averages.",
         .field = betas_field<Owner...>(), .range = kBelowOne, .list_size = 2, .default_note = note,
         .example = std::vector<double>{0.9, 0.95}},
        {.name = section + ".eps", .type = Number, .sentence = "Adam and AdamW: added to the denominator.",
         .field = field<Owner..., &Values::eps>(), .range = kFromZero, .default_note = note},
        {.name = section + ".momentum", .type = Number, .sentence = "SGD: momentum.",
         .field = field<Owner..., &Values::momentum>(), .range = kBelowOne, .default_note = note, .example = 0.9},
        {.name = section + ".dampening", .type = Number, .sentence = "SGD: dampening of the momentum.",
         .field = field<Owner..., &Values::dampening>(), .range = kFlag01, .default_note = note},
        {.name = section + ".nesterov", .type = Boolean, .sentence = "SGD: Nesterov momentum.",
         .field = field<Owner..., &Values::nesterov>(), .default_note = note, .example = true},
        {.name = section + ".amsgrad", .type = Boolean, .sentence = "Adam and AdamW: keep the largest average.",
         .field = field<Owner..., &Values::amsgrad>(), .default_note = note},
    };
}

Rows optimizer_rows() {
    return {
        {.name = "optimizer.kind", .type = Name, .sentence = "The update rule.",
         .field = field<&Plan::optimizer, &OptimizerPlan::kind>(), .names = &Names::optimizers},
        {.name = "optimizer.clip_norm", .type = Number, .sentence = "Largest global gradient norm; 0 = no clipping.",
         .field = field<&Plan::optimizer, &OptimizerPlan::clip_norm>(), .range = kFromZero, .example = 1.0},
    };
}

Rows group_rows() {
    return {
        {.name = "optimizer.group", .type = TableList,
         .sentence = "Parameter groups; the first that matches takes the parameter."},
        {.name = "optimizer.group.match", .type = TextList, .sentence = "Globs over parameter names.",
         .field = field<&Plan::optimizer, &OptimizerPlan::groups, &OptimizerGroup::match>(), .required = true,
         .example = Texts{"*.bias", "*ln*"}},
    };
}

Rows lr_schedule_rows() {
    return {
        {.name = "lr_schedule.kind", .type = Name,
         .sentence = "How the learning rate goes over the steps; README has the formulas.",
         .field = field<&Plan::lr_schedule, &LrSchedulePlan::kind>(), .names = &Names::lr_schedules,
         .example = "cosine"},
        {.name = "lr_schedule.warmup_steps", .type = Integer, .sentence = "Steps of linear warm-up.",
         .field = field<&Plan::lr_schedule, &LrSchedulePlan::warmup_steps>(), .range = kCount,
         .example = int64_t{100}},
        {.name = "lr_schedule.min_lr", .type = Number,
         .sentence = "The learning rate that decay ends at, the same for every group; a rate of 0 stays 0.",
         .field = field<&Plan::lr_schedule, &LrSchedulePlan::min_lr>(), .range = kFromZero, .example = 1e-5},
        {.name = "lr_schedule.decay_steps", .type = Integer,
         .sentence = "linear, cosine: steps of decay, 0 = to the end of training; wsd: how many of the last steps "
                     "decay, 0 = a tenth of all; step: steps from one drop to the next.",
         .field = field<&Plan::lr_schedule, &LrSchedulePlan::decay_steps>(), .range = kCount,
         .example = int64_t{1000}},
        {.name = "lr_schedule.gamma", .type = Number, .sentence = "step: factor of each drop.",
         .field = field<&Plan::lr_schedule, &LrSchedulePlan::gamma>(), .range = kPositive},
        {.name = "lr_schedule.restart_every", .type = Integer,
         .sentence = "linear, cosine, step: steps after which the decay begins anew; 0 = never.",
         .field = field<&Plan::lr_schedule, &LrSchedulePlan::restart_every>(), .range = kCount,
         .example = int64_t{1000}},
    };
}

Rows train_rows() {
    return {
        {.name = "train.steps", .type = Integer, .sentence = "Optimizer updates; not with epochs.",
         .field = field<&Plan::train, &TrainPlan::steps>(), .range = {1, 1e15}, .default_note = "none",
         .example = int64_t{200}},
        {.name = "train.epochs", .type = Integer, .sentence = "Passes over the data; not with steps.",
         .field = field<&Plan::train, &TrainPlan::epochs>(), .range = {1, 1e9}, .default_note = "none",
         .example = int64_t{10}},
        {.name = "train.global_batch_size", .type = Integer, .sentence = "Samples of a step over all replicas.",
         .field = field<&Plan::train, &TrainPlan::global_batch_size>(), .range = {1, 1e12},
         .default_note = "num_microbatches x accumulate x dp", .example = int64_t{32}},
        {.name = "train.seed", .type = Integer, .sentence = "Seed of data order and random ops.",
         .field = field<&Plan::train, &TrainPlan::seed>(), .range = kFromZero},
        {.name = "train.precision", .type = Choice,
         .sentence = "Element type of the computation; parameters stay as they are.",
         .field = field<&Plan::train, &TrainPlan::precision>(), 
         .choices = {"fp32", "bf16", "fp16"}, .example = "bf16"},
        {.name = "train.loss_scale", .type = Number, .sentence = "fp16: the loss scale of the first step.",
         .field = field<&Plan::train, &TrainPlan::loss_scale>(), .range = kPositiveFloat},
        {.name = "train.loss_scale_every", .type = Integer,
         .sentence = "fp16: steps without overflow after which the loss scale doubles.",
         .field = field<&Plan::train, &TrainPlan::loss_scale_every>(), .range = {1, 1e9}},
        {.name = "train.eval_every", .type = Integer, .sentence = "Steps between evaluations; 0 = never.",
         .field = field<&Plan::train, &TrainPlan::eval_every>(), .range = kCount, .example = int64_t{100}},
        {.name = "train.eval_batches", .type = Integer, .sentence = "Batches of an evaluation; 0 = all.",
         .field = field<&Plan::train, &TrainPlan::eval_batches>(), .range = kCount, .example = int64_t{16}},
        {.name = "train.accumulate", .type = Integer,
         .sentence = "Pipeline runs per update, each of num_microbatches; gradients are summed over all of them.",
         .field = field<&Plan::train, &TrainPlan::accumulate>(), .range = {1, 1000}, .example = int64_t{4}},
        {.name = "train.drift_every", .type = Integer,
         .sentence = "Steps between comparisons of the replicas' weights; 0 = never.",
         .field = field<&Plan::train, &TrainPlan::drift_every>(), .range = kCount, .example = int64_t{100}},
        {.name = "train.on_nonfinite", .type = Choice, .sentence = "What to do when a loss or gradient is not finite.",
         .field = field<&Plan::train, &TrainPlan::on_nonfinite>(), .choices = {"stop", "skip"}},
        {.name = "train.on_spike", .type = Choice, .sentence = "What to do when the loss of a step jumps.",
         .field = field<&Plan::train, &TrainPlan::on_spike>(), .choices = {"off", "warn", "skip", "stop"},
         .example = "skip"},
        {.name = "train.spike_sigmas", .type = Number,
         .sentence = "How many standard deviations above its recent mean a loss is a spike.",
         .field = field<&Plan::train, &TrainPlan::spike_sigmas>(), .range = kPositive},
        {.name = "eval.metrics", .type = TextList,
         .sentence = "Shown beside the loss: accuracy, the share of targets that are the largest output; perplexity, e "
                     "to the power of the loss.",
         .field = field<&Plan::eval, &EvalPlan::metrics>(), .example = Texts{"accuracy", "perplexity"}},
    };
}

Rows run_rows() {
    return {
        {.name = "run.dir", .type = Text, .sentence = "The run folder, relative to the current folder.",
         .field = field<&Plan::run, &RunPlan::dir>(), .default_note = "runs/<plan's name>", .example = "runs/gpt"},
        {.name = "run.max_restarts", .type = Integer,
         .sentence = "How often vpp run starts a job again that has lost a rank; never twice without a new step.",
         .field = field<&Plan::run, &RunPlan::max_restarts>(), .range = {0, 1e6}},
        {.name = "run.deadline_floor_s", .type = Number, .sentence = "The shortest deadline of a wait, in seconds.",
         .field = field<&Plan::run, &RunPlan::deadline_floor_s>(),
         .range = {.low = 0, .high = 1e6, .without_low = true}},
        {.name = "run.deadline_factor", .type = Number, .sentence = "Deadline of a wait in usual step times.",
         .field = field<&Plan::run, &RunPlan::deadline_factor>(), .range = {1, 1e6}},
    };
}

Rows checkpoint_and_report_rows() {
    return {
        {.name = "checkpoint.every", .type = Integer,
         .sentence = "Steps between saves; 0 = after the last step only, and where keep_every or every_minutes say so.",
         .field = field<&Plan::checkpoint, &CheckpointPlan::every>(), .range = kCount, .example = int64_t{500}},
        {.name = "checkpoint.keep", .type = Integer, .sentence = "How many of the newest checkpoints stay.",
         .field = field<&Plan::checkpoint, &CheckpointPlan::keep>(), .range = {1, 1e6}},
        {.name = "checkpoint.keep_every", .type = Integer,
         .sentence = "Checkpoints of every so many steps are saved too and stay for ever; 0 = of none.",
         .field = field<&Plan::checkpoint, &CheckpointPlan::keep_every>(), .range = kCount, .example = int64_t{5000}},
        {.name = "checkpoint.max_failures", .type = Integer, .sentence = "Failed saves in a row that end the job.",
         .field = field<&Plan::checkpoint, &CheckpointPlan::max_failures>(), .range = {1, 1e6}},
        {.name = "checkpoint.keep_best", .type = Integer,
         .sentence = "How many checkpoints of the lowest validation loss stay for ever, of those with an evaluation at "
                     "their step.",
         .field = field<&Plan::checkpoint, &CheckpointPlan::keep_best>(), .range = {0, 1e6}, .example = int64_t{1}},
        {.name = "checkpoint.every_minutes", .type = Number,
         .sentence = "Minutes after the last save when the next one is due; 0 = by steps only.",
         .field = field<&Plan::checkpoint, &CheckpointPlan::every_minutes>(), .range = {0, 1e9}, .example = 30.0},
        {.name = "checkpoint.background", .type = Boolean,
         .sentence = "Write while training goes on, from a copy of the state in memory.",
         .field = field<&Plan::checkpoint, &CheckpointPlan::background>()},
        {.name = "checkpoint.resume", .type = Text, .sentence = "auto, no, or the folder of a checkpoint.",
         .field = field<&Plan::checkpoint, &CheckpointPlan::resume>(),
         .example = "runs/gpt/checkpoints/step-00000500"},
        {.name = "report.every", .type = Integer, .sentence = "Steps between lines on the console.",
         .field = field<&Plan::report, &ReportPlan::every>(), .range = {1, 1e15}},
    };
}

}  // namespace

std::vector<Key> detail::make_key_rows() {
    Rows keys;
    const Rows values = optimizer_value_rows<&Plan::optimizer, &OptimizerPlan::values>("optimizer", "");
    const Rows group_values = optimizer_value_rows<&Plan::optimizer, &OptimizerPlan::groups, &OptimizerGroup::values>(
        "optimizer.group", "the optimizer's");
    for (const Rows& rows : {model_rows(), loss_rows(), data_rows(), transform_rows(), mesh_rows(), split_rows(),
                             schedule_rows(), recompute_and_stage_rows(), optimizer_rows(), values, group_rows(),
                             group_values, lr_schedule_rows(), train_rows(), run_rows(),
                             checkpoint_and_report_rows()}) {
        keys.insert(keys.end(), rows.begin(), rows.end());
    }
    return keys;
}

}  // namespace vpp
