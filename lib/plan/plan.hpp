#pragma once
// The plan: everything that a user decides, as typed values with the position of each. DESIGN: one table of keys
// (plan/keys.hpp) names every field here; reader, checker, explain and the reference page are made from it.
// A Plan is made by load_plan and never changed afterwards.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace vpp {

/// A name -> text table of the plan ([data.train] of arrays, [data.fields] of synthetic), in the order of the file.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

struct InitRule {                    ///< one [[model.init]] table
    std::vector<std::string> match;  ///< globs over parameter names; the first rule that matches takes the parameter
    std::string kind;                ///< normal | uniform | zeros | ones
    double mean = 0, std = 1;        ///< normal
    double low = 0, high = 1;        ///< uniform
};

struct ModelPlan {
    std::string file;                     ///< TorchScript file, already resolved against the plan's folder
    std::string eval_file;                ///< the same model traced in eval mode; empty: `file` has both modes
    std::vector<std::string> inputs;      ///< data fields in the order of forward's arguments; empty = their own names
    int loss_output = 0;                  ///< which output of forward is the loss; unused with [loss]
    std::string loss_reduction = "mean";  ///< mean | sum | target_mean
    std::string init_from;  ///< a checkpoint's folder or a safetensors file, resolved; empty = the model's
    std::vector<InitRule> init;
    std::vector<std::string> freeze;        ///< globs over parameters that are not trained; "!GLOB" takes out again
    std::vector<std::string> eval_modules;  ///< globs over submodules that stay in eval mode in training
    std::vector<std::string> trust_sha256;  ///< 64 hexadecimal digits each: files that may use any operator

    /// The loss of a step is the sum over its targets by their number, not a mean of microbatch means.
    bool is_target_mean() const { return loss_reduction == "target_mean"; }
};

struct LossPlan {
    std::string kind;             ///< cross_entropy | mse | nll | bce_with_logits | l1
    int input = 0;                ///< which output of forward is compared
    std::string target;           ///< data field
    int64_t ignore_index = -100;  ///< cross_entropy and nll
    int class_dim = 1;            ///< of classes in that output: 1 or -1; cross_entropy and nll
    double label_smoothing = 0;   ///< cross_entropy

    bool is_over_classes() const { return kind == "cross_entropy" || kind == "nll"; }
};

struct TransformPlan {  ///< one [[data.transform]] table; what it does not name stays as it is
    std::string field;
    std::vector<int64_t> resize = {}, crop = {};  ///< [height, width], or empty
    int64_t pad = 0;                              ///< values around a picture that a random crop may take in
    double flip = 0;                              ///< how often a picture is mirrored in training
    double scale = 1;
    std::vector<double> mean = {},
                        deviation = {};  ///< as many of each: none, one, or one for each entry of the first dim
};

struct DataPlan {
    std::string kind;                     ///< tokens | text | arrays | idx | cifar10 | synthetic
    std::vector<std::string> train, val;  ///< files, resolved; tokens, text and cifar10
    NamedTexts train_fields, val_fields;  ///< arrays and idx: field -> file, resolved
    NamedTexts fields;                    ///< synthetic: field -> "float32[3, 32, 32]" or "int64[] < 10"
    int64_t samples = 0;                  ///< synthetic: number of samples
    int64_t sequence_length = 0;          ///< tokens and text
    std::string token_dtype =
        "auto";  ///< tokens: auto | uint16 | uint32; auto: what a header or index says, else uint16
    bool shuffle = true;
    std::vector<double> weights;  ///< how often each file of train is drawn from; empty = as many samples as it has
    double val_split = 0;         ///< share of the samples of train that is held out for validation; 0 = none
    std::string documents = "joined";  ///< tokens: joined | apart
    int64_t read_ahead_bytes = int64_t{64} << 20;
    std::vector<TransformPlan> transforms;
};

struct MeshPlan {
    std::optional<int> pp, dp, tp;
    std::string device = "auto";
    int threads = 1;
    std::string transport = "auto";
    bool zero1 = false;
    int64_t bucket_bytes = int64_t{25} << 20;
};

struct StagePlan {  ///< one [[pipeline.stage]] table (MANUAL_EAGER)
    std::string name, file;
    std::vector<std::string> modules, inputs, outputs;
    std::string eval_file = {};  ///< the same module traced in eval mode; empty: `file` has both modes
};

struct RecomputePlan {
    std::string what = "none";         ///< none | stage | units | modules
    int64_t every = 1;                 ///< units: so many make a segment
    std::vector<std::string> modules;  ///< modules: FQNs, globs or class names
    bool except_last = false;          ///< the last microbatch keeps its activations
};

/// The most that the activations of a rank may be; one of the two is set.
struct MemoryLimit {
    std::optional<double> activations;  ///< in those of a microbatch on a full rank
    std::optional<int64_t> bytes;
};

struct SearchPlan {  ///< schedule_type = "AUTO"
    int64_t moves = 20'000'000;
    uint64_t seed = 0;
    std::string objective = "makespan";  ///< makespan | span
};

struct PipelinePlan {
    std::string mode = "GRAPH_EAGER";
    std::string split_method = "FLOPS";
    std::optional<int> num_stages;
    int virtual_chunks = 1;
    bool choose_virtual_chunks = false;  ///< virtual_chunks = "auto": AUTO chooses; the number above says nothing then
    std::vector<std::string> split_points;
    bool uniform_split_ops = false;
    std::vector<std::string> smallest_unsplittable_units;
    std::string schedule_type = "1F1B";
    std::string schedule_file;
    std::optional<int> interleave_group_size;
    std::optional<int> num_microbatches;  ///< default 2 x pp
    bool overlap_p2p_comm = true;
    bool cuda_graphs = true;
    bool forward_only = false;
    std::string tied_gradients = "exact";
    bool deferred_batch_norm = false;
    RecomputePlan recompute;
    std::string cost_file;  ///< empty = costs are estimated from FLOPs
    std::optional<MemoryLimit> memory_limit;
    SearchPlan search;
    std::vector<StagePlan> stages;

    /// Tables say what the stages are; no method cuts.
    bool is_by_hand() const { return mode == "MANUAL_EAGER"; }
};

struct OptimizerValues {  ///< the numbers of one parameter group
    double lr = 1e-3;
    double weight_decay = 0;
    double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
    double momentum = 0, dampening = 0;
    bool nesterov = false, amsgrad = false;
    bool operator==(const OptimizerValues&) const = default;
};

struct OptimizerGroup {
    std::vector<std::string> match;  ///< globs over parameter names; the first group that matches takes the parameter
    OptimizerValues values;          ///< what the group does not name is the optimizer's
};

struct OptimizerPlan {
    std::string kind = "adamw";
    OptimizerValues values;
    double clip_norm = 0;  ///< 0 = no clipping
    std::vector<OptimizerGroup> groups;
};

struct LrSchedulePlan {
    std::string kind = "constant";
    int64_t warmup_steps = 0;
    double min_lr = 0;
    int64_t decay_steps = 0;  ///< 0 = to the end of the training
    double gamma = 0.1;
    int64_t restart_every = 0;  ///< 0 = never
};

struct TrainPlan {
    std::optional<int64_t> steps, epochs;  ///< exactly one of them, or neither for commands that do not train
    std::optional<int64_t> global_batch_size;
    int accumulate = 1;  ///< pipeline runs of a step
    uint64_t seed = 1234;
    std::string precision = "fp32";
    int64_t drift_every = 0;
    double loss_scale = 65536;          ///< fp16: the first one
    int64_t loss_scale_every = 2000;    ///< fp16: steps without overflow before it doubles
    int64_t eval_every = 0;             ///< 0 = never
    int64_t eval_batches = 0;           ///< 0 = all
    std::string on_nonfinite = "stop";  ///< stop | skip
    std::string on_spike = "off";       ///< off | warn | skip | stop
    double spike_sigmas = 6;            ///< standard deviations above the mean loss that make a spike
};

struct EvalPlan {
    std::vector<std::string> metrics;  ///< accuracy, perplexity: shown beside the loss
};

struct RunPlan {
    std::string dir;       ///< default runs/<plan's name>; relative to the current folder
    int max_restarts = 0;  ///< by vpp run; 0 = never
    double deadline_floor_s = 60;
    double deadline_factor = 20;
};

struct CheckpointPlan {
    int64_t every = 0;  ///< 0 = only after the last step
    int keep = 3;
    int64_t keep_every = 0;    ///< 0 = none stays for ever
    int keep_best = 0;         ///< how many of the lowest validation loss stay too
    double every_minutes = 0;  ///< 0 = by steps only
    bool background = true;    ///< written while training goes on
    int max_failures = 3;
    std::string resume = "auto";
};

struct ReportPlan {
    int64_t every = 10;
};

/// All of it. Optional fields are filled by resolve_plan (plan/rules.hpp).
struct Plan {
    std::string file;                   ///< as the user named it
    std::string name;                   ///< the file's name without folder and ending
    std::vector<std::string> settings;  ///< "section.key=value" of --set, as the user gave them
    ModelPlan model;
    std::optional<LossPlan> loss;
    DataPlan data;
    MeshPlan mesh;
    PipelinePlan pipeline;
    OptimizerPlan optimizer;
    LrSchedulePlan lr_schedule;
    TrainPlan train;
    EvalPlan eval;
    RunPlan run;
    CheckpointPlan checkpoint;
    ReportPlan report;

    /// Where each key was written: "pipeline.num_stages", "pipeline.split_points[2]", "optimizer.group[0].lr".
    std::map<std::string, SourcePosition> positions;
    /// The plan with every key and its value, as TOML in the order of the table: what the digest is made of.
    std::string resolved_text;

    /// The position of a key, or of the nearest written key above it; empty for a default.
    std::optional<SourcePosition> where(const std::string& key) const;
};

}  // namespace vpp
