#include "plan/foreign_keys.hpp"

#include <algorithm>
#include <cctype>

namespace vpp {

namespace {

/// "--Micro-Batch-Size" is micro_batch_size.
std::string lower_name(std::string_view name) {
    std::string plain(name.substr(std::min(name.find_first_not_of('-'), name.size())));
    for (char& c : plain) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return plain;
}

std::string meant(const std::string& name) {
    return "did you mean " + name + '?';
}

std::string meant(const std::string& name, const std::string& more) {
    return meant(name) + ' ' + more;
}

}  // namespace

const std::vector<ForeignKeys>& foreign_keys() {
    static const std::string kTraced = "leave it out: tracing is done when the model is exported to TorchScript";
    static const std::string kJoined = "leave it out: mpirun, or vpp run --host a:4,b:4, joins the ranks";
    static const std::vector<ForeignKeys> kKeys = {
        // How much at once.
        {meant("train.global_batch_size"),
         {"batch_size", "train_batch_size", "global_batch", "total_batch_size", "minibatch_size"}},
        {meant("pipeline.num_microbatches",
               "A microbatch has train.global_batch_size / (num_microbatches x train.accumulate x mesh.dp) samples"),
         {"micro_batch_size", "microbatch_size", "train_micro_batch_size_per_gpu", "per_device_train_batch_size",
          "local_batch_size", "pipeline_parallel_microbatch_size", "batch_size_per_gpu", "device_batch_size"}},
        {meant("pipeline.num_microbatches"),
         {"micro_batches", "n_microbatches", "num_micro_batches", "num_pp_microbatches",
          "pipeline_parallel_microbatches"}},
        {meant("train.accumulate"),
         {"gradient_accumulation_steps", "gradient_accumulation", "accumulate_grad_batches", "grad_accum",
          "grad_accumulation_steps", "accumulation_steps", "accum_steps", "update_freq"}},
        {meant("data.sequence_length"),
         {"seq_length", "seq_len", "max_seq_len", "max_seq_length", "block_size", "context_length"}},
        {"leave it out: shapes come from the data; [data] and train.global_batch_size say how many", {"data_shape"}},
        // How long.
        {meant("train.steps"),
         {"max_steps", "num_steps", "total_steps", "train_iters", "max_iters", "iterations", "training_steps",
          "max_train_steps", "num_iterations"}},
        {meant("train.epochs"), {"num_epochs", "max_epochs", "num_train_epochs", "n_epochs"}},
        {meant("train.eval_every"),
         {"eval_interval", "eval_steps", "eval_freq", "evaluation_interval", "val_interval", "val_freq",
          "val_check_interval", "validation_freq"}},
        {meant("train.eval_batches"), {"eval_iters", "val_steps", "limit_val_batches", "max_eval_batches"}},
        // Ranks.
        {"leave it out: it is the number of ranks that start, as in vpp run -n 4; [mesh] says what they do",
         {"world_size", "num_gpus", "n_gpus", "gpus", "nproc", "nproc_per_node", "num_ranks", "num_processes",
          "devices"}},
        {kJoined,
         {"nnodes", "num_nodes", "hosts", "master_addr", "master_port", "rdzv_endpoint", "init_method", "local_rank"}},
        {meant("pipeline.num_stages"),
         {"pipeline_model_parallel_size", "pipeline_parallel_size", "pipeline_parallel_degree", "pipeline_parallel",
          "pp_size", "pp_degree", "num_pipeline_stages"}},
        {meant("mesh.dp"),
         {"data_parallel", "data_parallel_size", "data_parallel_degree", "data_parallel_replicate_degree", "dp_size",
          "dp_degree", "ddp", "num_replicas", "replicas"}},
        {meant("mesh.tp"),
         {"tensor_model_parallel_size", "tensor_parallel", "tensor_parallel_size", "tensor_parallel_degree", "tp_size",
          "tp_degree"}},
        {meant("mesh.zero1", "Replicas share the optimizer's state then; their weights and gradients stay whole"),
         {"zero", "zero_stage", "zero_optimization", "zero_optimizer", "use_distributed_optimizer",
          "distributed_optimizer", "fsdp", "data_parallel_shard_degree"}},
        {"did you mean section train?", {"training"}},
        {"did you mean [mesh] or [pipeline]?", {"parallelism", "parallel", "distributed"}},
        {meant("mesh.transport"), {"backend", "dist_backend", "distributed_backend", "ddp_backend"}},
        {meant("mesh.threads"), {"num_threads", "omp_num_threads", "intra_op_threads"}},
        {meant("mesh.bucket_bytes"), {"bucket_cap_mb", "bucket_size", "reduce_bucket_size", "allreduce_bucket_size"}},
        {meant("run.deadline_floor_s"),
         {"timeout", "ddp_timeout", "nccl_timeout", "distributed_timeout_minutes", "comm_timeout_seconds"}},
        // The pipeline.
        {meant("pipeline.virtual_chunks"),
         {"virtual_pipeline_model_parallel_size", "num_virtual_stages_per_rank", "num_virtual_stages",
          "num_model_chunks", "virtual_pipeline_size", "num_layers_per_virtual_pipeline_stage",
          "pipeline_parallel_layers_per_stage"}},
        {meant("pipeline.schedule_type"), {"pipeline_parallel_schedule", "pipeline_schedule", "pp_schedule"}},
        {meant("pipeline.schedule_file"), {"pipeline_parallel_schedule_csv"}},
        {meant("pipeline.split_method"), {"partition_method", "partition", "balance"}},
        {meant("pipeline.split_points"),
         {"pipeline_parallel_split_points", "module_fqns_per_model_part", "split_spec"}},
        {"leave it out: pipeline.split_points takes pp x virtual_chunks ends, or pp ends of parts that are each cut "
         "evenly",
         {"enable_vpp_split_points"}},
        {"leave it out: the schedule is made once per run", {"reuse_schedule"}},
        {"leave it out: tied parameters are found in the model",
         {"shared_modules", "tie_word_embeddings", "tied_layers", "untie_embeddings_and_output_weights"}},
        {"leave it out: every edge has the dtype of its value", {"p2p_tensor_dtype"}},
        {"leave it out: the shapes of all edges are fixed when the program is made", {"reuse_p2p_tensor_shape"}},
        {"leave it out: receives are posted ahead; pipeline.overlap_p2p_comm = false finishes a send before the next "
         "action",
         {"batch_p2p_comm"}},
        {kTraced, {"tracer_type", "tracer_kwargs"}},
        {"did you mean section pipeline.recompute?",
         {"activation_checkpointing", "activation_checkpoint", "gradient_checkpointing", "checkpoint_activations",
          "recompute_activations", "recompute_granularity", "recompute_method", "remat"}},
        {meant("pipeline.recompute.every"), {"recompute_num_layers", "selective_ac_option", "number_checkpoints"}},
        // The update.
        {meant("optimizer.kind"),
         {"optim", "optimizer_type", "optimizer_name", "optim_type", "optimizer.name", "optimizer.type"}},
        {meant("lr"), {"learning_rate", "base_lr", "max_lr", "peak_lr"}},
        {meant("optimizer.clip_norm"),
         {"max_grad_norm", "grad_clip", "gradient_clipping", "gradient_clip", "gradient_clip_val", "clip_grad",
          "clip_grad_norm", "max_norm", "grad_norm_clip"}},
        {meant("betas, as in betas = [0.9, 0.999]"), {"beta1", "beta2", "adam_beta1", "adam_beta2"}},
        {meant("eps"), {"epsilon", "adam_eps", "adam_epsilon"}},
        {meant("weight_decay"), {"wd", "adam_weight_decay"}},
        {"did you mean lr_schedule.kind, or pipeline.schedule_type, the order of work?", {"scheduler", "schedule"}},
        {meant("lr_schedule.kind"),
         {"lr_scheduler", "lr_scheduler_type", "lr_decay_style", "decay_type", "lr_decay", "lr_schedule.name",
          "lr_schedule.type"}},
        {meant("lr_schedule.warmup_steps"),
         {"warmup", "num_warmup_steps", "warmup_num_steps", "warmup_iters", "lr_warmup_iters", "lr_warmup_steps",
          "warmup_ratio", "lr_warmup_fraction"}},
        {meant("lr_schedule.decay_steps"), {"lr_decay_iters", "lr_decay_steps", "decay_iters", "decay_ratio"}},
        {meant("train.precision, as in precision = \"bf16\""),
         {"amp", "use_amp", "autocast", "mixed_precision", "mixed_precision_param", "torch_dtype", "params_dtype",
          "bf16", "fp16", "fp32", "bfloat16", "float16"}},
        {meant("train.precision", "The type of tokens in files is data.token_dtype"), {"dtype"}},
        {meant("train.loss_scale"), {"init_scale", "initial_loss_scale", "initial_scale_power"}},
        {meant("train.loss_scale_every"), {"loss_scale_window", "growth_interval"}},
        {"leave it out: every run is deterministic", {"deterministic", "use_deterministic_algorithms"}},
        {"leave it out: ops run one by one, so that no bit changes", {"compile", "torch_compile"}},
        {meant("loss.kind"), {"loss_fn", "criterion", "loss_function", "loss.name", "loss.type"}},
        // Data and weights.
        {meant("data.kind"), {"data.name", "data.type"}},
        {meant("data.train"),
         {"dataset", "dataset_path", "data_path", "train_data", "train_file", "train_data_path", "data.path",
          "data.folder", "data.dir"}},
        {meant("data.val"), {"val_data", "valid_data", "eval_dataset", "validation_file", "val_data_path"}},
        {meant("data.read_ahead_bytes"),
         {"num_workers", "dataloader_num_workers", "workers", "prefetch_factor", "pin_memory"}},
        {meant("model.file", "It names a TorchScript file; vpp init own-model makes a plan for one"),
         {"model.name", "model.type", "model.path", "model.flavor"}},
        {meant("model.freeze"), {"frozen", "freeze_layers", "frozen_modules"}},
        {meant("model.init_from"), {"pretrained", "pretrained_checkpoint", "load_weights", "initial_load_path"}},
        // What stays.
        {meant("checkpoint.every"),
         {"save_interval", "save_steps", "save_every", "save_freq", "checkpoint_interval", "ckpt_freq", "ckpt_interval",
          "checkpoint_every", "checkpoint.interval"}},
        {"leave it out: checkpoints lie in checkpoints/ below run.dir",
         {"checkpoint.folder", "checkpoint.dir", "checkpoint.path"}},
        {meant("checkpoint.keep"), {"save_total_limit", "keep_latest_k", "max_to_keep", "save_top_k"}},
        {meant("checkpoint.background"), {"async_save", "async_mode"}},
        {meant("checkpoint.resume", "Weights alone are model.init_from"),
         {"resume_from_checkpoint", "resume_from", "load", "load_checkpoint", "load_path", "ckpt_path"}},
        {meant("run.dir"),
         {"output_dir", "out_dir", "save_dir", "checkpoint_dir", "log_dir", "logging_dir", "dump_folder", "save"}},
        {meant("report.every"), {"log_interval", "log_every", "log_freq", "logging_steps", "print_freq"}},
        {"leave it out: a run folder has metrics.jsonl, metrics.csv and tensorboard/",
         {"wandb", "enable_wandb", "use_wandb", "enable_tensorboard", "tensorboard_dir", "report_to"}},
        {"leave it out: vpp train PLAN --profile 5 does it", {"enable_profiling", "profiler", "profile_freq"}},
    };
    return kKeys;
}

std::string foreign_key_answer(std::string_view last_part, std::string_view section) {
    const std::string name = lower_name(last_part);
    for (const std::string& typed : {lower_name(section) + '.' + name, name}) {
        for (const ForeignKeys& keys : foreign_keys()) {
            if (std::ranges::find(keys.names, typed) != keys.names.end()) return keys.answer;
        }
    }
    return "";
}

std::string foreign_precision(std::string_view word) {
    static const std::vector<ForeignKeys> kWords = {
        {"fp32", {"float32", "float", "single", "32", "32_true", "f32"}},
        {"bf16", {"bfloat16", "bf16_mixed", "bf16_true", "bfloat"}},
        {"fp16", {"float16", "half", "16", "16_mixed", "fp16_mixed", "f16"}},
    };
    const std::string plain = lower_name(word);
    for (const auto& [meant_word, words] : kWords) {
        if (std::ranges::find(words, plain) != words.end()) return meant_word;
    }
    return "";
}

}  // namespace vpp
