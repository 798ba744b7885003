// The example manual: the upper and the lower half of a digit go through stages of their own.
#include "examples/array_file.hpp"
#include "examples/digit_images.hpp"
#include "examples/layers.hpp"
#include "examples/makers.hpp"
#include "examples/plan_template.hpp"

namespace vpp::detail {

namespace {

constexpr int64_t kManualTrainSamples = 1600, kManualValSamples = 320;

constexpr std::string_view kManualPlan =
    R"toml(# A model file per stage, joined by this plan, on three ranks. Made by: vpp init manual
# The upper and the lower half of a picture of a digit go through stages of their own; a third one reads both.
#
# In the folder of this file:
#   vpp inspect plan.toml
#       shows what would happen: which value goes from which stage to which
#   vpp run plan.toml
#       trains; the loss falls from 2.3 to about 0.1 in seconds
#
# What a key means: vpp explain pipeline.stage; what there is: vpp explain. All that is left out has a default.
# Paths of inputs are relative to this file, paths of outputs to the folder that you are in.

# There is no [model]: each stage has a file. What the last one returns is compared with a field of the data.
[loss]
kind   = "cross_entropy"      # others: vpp explain loss.kind
target = "label"

# One .npy file a field (numpy.save); its first dimension counts the samples.
[data]
kind = "arrays"
[data.train]
upper = "train_upper.npy"     # float32 [1600, 4, 8]
lower = "train_lower.npy"     # float32 [1600, 4, 8]
label = "train_label.npy"     # int64 [1600], 0 to 9
[data.val]
upper = "val_upper.npy"
lower = "val_lower.npy"
label = "val_label.npy"

# Nothing is cut: the tables below say what each stage runs, one for each rank, in order.
[pipeline]
mode             = "MANUAL_EAGER"
num_stages       = 3          # ranks of the pipeline: vpp run starts as many
schedule_type    = "1F1B"     # vpp schedule list
num_microbatches = 4          # a batch goes through in four pieces, so that all ranks have work

[[pipeline.stage]]
name    = "upper"             # its parameters are upper.hidden.weight, ...
file    = "upper.pt"          # TorchScript, as torch.jit.script(module).save("upper.pt") writes it
inputs  = ["upper"]           # forward's arguments in order: a field of the data
outputs = ["up"]              # a name of your own for what forward returns
[[pipeline.stage]]
name    = "lower"
file    = "lower.pt"
inputs  = ["lower"]           # nothing of the stage before: "up" passes by
outputs = ["low", "gate"]     # a tuple of two
[[pipeline.stage]]
name    = "head"
file    = "head.pt"
inputs  = ["up", "low", "gate"]  # outputs of any stages before
outputs = ["scores"]          # the last stage returns what [loss] compares

[optimizer]
kind = "adamw"                # adamw, adam or sgd
lr   = 1e-2

[train]
steps             = 100
global_batch_size = 32        # samples a step, over all microbatches
eval_every        = 25        # the loss over data.val, every so many steps

# Checkpoints, logs and metrics. The same command goes on from the newest checkpoint.
[run]
dir = {{run_dir}}
)toml";

ScriptedModule upper() {
    ScriptedModule module{"Upper", R"(
def forward(self, image):
    return torch.relu(self.hidden.forward(torch.flatten(image, 1)))
)"};
    module.children = {{"hidden", linear(32, 64)}};
    return module;
}

ScriptedModule lower() {
    ScriptedModule module{"Lower", R"(
def forward(self, image):
    flat = torch.flatten(image, 1)
    return torch.relu(self.hidden.forward(flat)), torch.sigmoid(self.gate.forward(flat))
)"};
    module.children = {{"hidden", linear(32, 64)}, {"gate", linear(32, 64)}};
    return module;
}

ScriptedModule head() {
    ScriptedModule module{"Head", R"(
def forward(self, up, low, gate):
    both = torch.cat([up * gate, low], 1)
    return self.out.forward(torch.relu(self.mix.forward(both)))
)"};
    module.children = {{"mix", linear(128, 64)}, {"out", linear(64, 10)}};
    return module;
}

void add_halves(std::vector<ExampleFile>& files, const std::string& part, const DigitImages& digits) {
    constexpr int64_t kSide = DigitImages::kSide, kHalf = kSide / 2;
    files.push_back({part + "_upper.npy", array_file({digits.count(), kHalf, kSide}, digits.rows(0, kHalf))});
    files.push_back({part + "_lower.npy", array_file({digits.count(), kHalf, kSide}, digits.rows(kHalf, kSide))});
    files.push_back({part + "_label.npy", array_file({digits.count()}, digits.labels)});
}

}  // namespace

MadeExample make_manual(const ExampleRequest& request) {
    MadeExample made{{plan_file(kManualPlan, request),
                      {"upper.pt", model_file(upper(), 1)},
                      {"lower.pt", model_file(lower(), 2)},
                      {"head.pt", model_file(head(), 3)}}};
    add_halves(made.files, "train", draw_digits(kManualTrainSamples, 1));
    add_halves(made.files, "val", draw_digits(kManualValSamples, 2));
    return made;
}

}  // namespace vpp::detail
