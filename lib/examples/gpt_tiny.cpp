// The example gpt-tiny. Letters: n samples, t positions, d width.
#include "examples/layers.hpp"
#include "examples/makers.hpp"
#include "examples/plan_template.hpp"
#include "examples/sentences.hpp"

namespace vpp::detail {

namespace {

constexpr int64_t kWidth = 64, kPositions = 64, kBytes = 256;
constexpr size_t kTrainBytes = 100'000, kValBytes = 20'000;

constexpr std::string_view kGptPlan =
    R"toml(# A small GPT learns to write sentences, byte by byte, on two ranks. Made by: vpp init gpt-tiny
#
# In the folder of this file:
#   vpp inspect plan.toml
#       shows what would happen: stages, edges, memory, schedule
#   vpp run plan.toml
#       trains; the loss falls from 5.7 nats per byte to below 1 in seconds
#   vpp run verify plan.toml --steps 3
#       proves that two ranks compute the bits of one device
#
# What a key means: vpp explain pipeline.schedule_type; what there is: vpp explain. All that is left out has a default.
# Paths of inputs are relative to this file, paths of outputs to the folder that you are in.

[model]
file = "model.pt"             # TorchScript, as torch.jit.script(model).save("model.pt") writes it.
                              # forward(tokens, targets) returns the loss; its arguments are fields of the data.

# What the model reads: windows of a text, byte by byte. Your own text: name its files here.
[data]
kind  = "text"                # other kinds: vpp explain data.kind
train = ["train.txt"]
val   = ["val.txt"]           # for train.eval_every; may be left out
sequence_length = 64          # bytes of a sample; the model has 64 positions

# How the model is cut and in which order the ranks work.
[pipeline]
num_stages       = 2          # ranks of the pipeline: vpp run starts as many
split_method     = "FLOPS"    # cut so that the dearest stage is as cheap as it can be
smallest_unsplittable_units = ["Block"]  # submodules that stay whole, by class or by name
schedule_type    = "1F1B"     # vpp schedule list
num_microbatches = 4          # a batch goes through in four pieces, so that both ranks have work

[optimizer]
kind      = "adamw"
lr        = 3e-3
clip_norm = 1.0               # longer gradients, by the norm over all stages, are scaled down to it

# The learning rate: up over ten steps, then down along a cosine.
[lr_schedule]
kind         = "cosine"
warmup_steps = 10
min_lr       = 3e-4

[train]
steps             = 200
global_batch_size = 16        # samples a step, over all microbatches
eval_every        = 50        # the loss over data.val, every so many steps
eval_batches      = 4         # so many batches of it

# Checkpoints, logs and metrics. The same command goes on from the newest checkpoint.
[run]
dir = {{run_dir}}
)toml";

ScriptedModule attention() {
    // [n, t, 3 d] -> queries, keys, values [n, heads, t, d / heads]
    ScriptedModule module{"Attention", R"(
def forward(self, x):
    n, t = x.size(0), x.size(1)
    parts = self.qkv.forward(x).view([n, t, 3, 4, 16]).permute([2, 0, 3, 1, 4])
    y = torch.scaled_dot_product_attention(parts[0], parts[1], parts[2], None, 0.0, True)
    return self.proj.forward(y.transpose(1, 2).reshape([n, t, 64]))
)"};
    module.children = {{"qkv", linear(kWidth, 3 * kWidth)}, {"proj", linear(kWidth, kWidth)}};
    return module;
}

ScriptedModule block() {
    ScriptedModule module{"Block", R"(
def forward(self, x):
    x = x + self.attn.forward(self.ln1.forward(x))
    return x + self.down.forward(torch.gelu(self.up.forward(self.ln2.forward(x))))
)"};
    module.children = {{"ln1", layer_norm(kWidth)},
                       {"attn", attention()},
                       {"ln2", layer_norm(kWidth)},
                       {"up", linear(kWidth, 4 * kWidth)},
                       {"down", linear(4 * kWidth, kWidth)}};
    return module;
}

ScriptedModule gpt() {
    ScriptedModule module{"GPT", R"(
def forward(self, tokens, targets):
    positions = torch.arange(tokens.size(1), device=tokens.device)
    x = self.token_embedding.forward(tokens) + self.position_embedding.forward(positions)
    x = self.block1.forward(self.block0.forward(x))
    logits = self.head.forward(self.ln_out.forward(x))
    return torch.cross_entropy_loss(torch.flatten(logits, 0, 1), torch.flatten(targets), None, 1, -100, 0.0)
)"};
    module.children = {{"token_embedding", embedding(kBytes, kWidth, 0.02)},
                       {"position_embedding", embedding(kPositions, kWidth, 0.02)},
                       {"block0", block()},
                       {"block1", block()},
                       {"ln_out", layer_norm(kWidth)},
                       {"head", linear(kWidth, kBytes)}};
    return module;
}

}  // namespace

MadeExample make_gpt_tiny(const ExampleRequest& request) {
    return {{plan_file(kGptPlan, request),
             {"model.pt", model_file(gpt(), 1)},
             {"train.txt", make_sentences(kTrainBytes, 1)},
             {"val.txt", make_sentences(kValBytes, 2)}}};
}

}  // namespace vpp::detail
