// The example digits-cnn.
#include "examples/array_file.hpp"
#include "examples/digit_images.hpp"
#include "examples/layers.hpp"
#include "examples/makers.hpp"
#include "examples/plan_template.hpp"

namespace vpp::detail {

namespace {

constexpr int64_t kDigitsTrainSamples = 1600, kDigitsValSamples = 320;

constexpr std::string_view kDigitsPlan =
    R"toml(# A convolutional network learns to read digits, on two ranks. Made by: vpp init digits-cnn
#
# In the folder of this file:
#   vpp inspect plan.toml
#       shows what would happen: stages, edges, memory, schedule
#   vpp run plan.toml
#       trains; the loss falls from 2.3 to about 0.05 in seconds
#
# What a key means: vpp explain data.train; what there is: vpp explain. All that is left out has a default.
# Paths of inputs are relative to this file, paths of outputs to the folder that you are in.

[model]
file = "model.pt"             # TorchScript; forward(image) returns a score for each of ten classes

# forward returns no loss, so the plan adds one.
[loss]
kind   = "cross_entropy"      # others: vpp explain loss.kind
target = "label"              # the field that the scores are compared with

# One .npy file a field (numpy.save); its first dimension counts the samples.
[data]
kind = "arrays"
[data.train]
image = "train_image.npy"     # float32 [1600, 1, 8, 8]; named like the argument of forward
label = "train_label.npy"     # int64 [1600], 0 to 9
[data.val]
image = "val_image.npy"
label = "val_label.npy"

# How the model is cut and in which order the ranks work.
[pipeline]
num_stages       = 2          # ranks of the pipeline: vpp run starts as many
split_method     = "FLOPS"    # cut so that the dearest stage is as cheap as it can be
schedule_type    = "1F1B"     # vpp schedule list
num_microbatches = 4          # a batch goes through in four pieces, so that both ranks have work

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

ScriptedModule cnn() {
    ScriptedModule module{"CNN", R"(
def forward(self, image):
    x = torch.max_pool2d(torch.relu(self.conv1.forward(image)), [2, 2])
    x = torch.max_pool2d(torch.relu(self.conv2.forward(x)), [2, 2])
    x = torch.relu(self.hidden.forward(torch.flatten(x, 1)))
    return self.head.forward(x)
)"};
    module.children = {
        {"conv1", conv3x3(1, 16)}, {"conv2", conv3x3(16, 32)}, {"hidden", linear(128, 64)}, {"head", linear(64, 10)}};
    return module;
}

void add_digits(std::vector<ExampleFile>& files, const std::string& part, const DigitImages& digits) {
    constexpr int64_t kSide = DigitImages::kSide;
    files.push_back({part + "_image.npy", array_file({digits.count(), 1, kSide, kSide}, digits.pixels)});
    files.push_back({part + "_label.npy", array_file({digits.count()}, digits.labels)});
}

}  // namespace

MadeExample make_digits_cnn(const ExampleRequest& request) {
    MadeExample made{{plan_file(kDigitsPlan, request), {"model.pt", model_file(cnn(), 1)}}};
    add_digits(made.files, "train", draw_digits(kDigitsTrainSamples, 1));
    add_digits(made.files, "val", draw_digits(kDigitsValSamples, 2));
    return made;
}

}  // namespace vpp::detail
