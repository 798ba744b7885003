// The example two-towers. The class is 3 x (topic of the words) + (kind of the numbers): neither input tells it alone.
#include <algorithm>

#include "base/random.hpp"
#include "data/synthetic.hpp"
#include "examples/array_file.hpp"
#include "examples/layers.hpp"
#include "examples/makers.hpp"
#include "examples/plan_template.hpp"

namespace vpp::detail {

namespace {

constexpr int64_t kTowersTrainSamples = 1600, kTowersValSamples = 320;
constexpr int64_t kTopics = 3, kKinds = 3, kWordsOfTopic = 8, kWords = 6, kNumbers = 9;

constexpr std::string_view kTwoTowersPlan =
    R"toml(# Words and numbers, each with a tower of its own, joined late, on two ranks. Made by: vpp init two-towers
# The words tell three topics apart, the numbers three kinds; the class is the pair, so both towers must learn.
#
# In the folder of this file:
#   vpp inspect plan.toml
#       shows what would happen: where the two branches are cut, and what goes from stage to stage
#   vpp run plan.toml
#       trains; the loss falls from 2.2 to below 0.1 in seconds
#
# What a key means: vpp explain model.inputs; what there is: vpp explain. All that is left out has a default.
# Paths of inputs are relative to this file, paths of outputs to the folder that you are in.

[model]
file   = "model.pt"              # TorchScript; forward(words, numbers) returns a score for each of nine classes
inputs = ["words", "numbers"]    # fields of the data in the order of forward's arguments; here their own names

# forward returns no loss, so the plan adds one.
[loss]
kind   = "cross_entropy"         # others: vpp explain loss.kind
target = "class"                 # a field of the data that forward does not see

# One .npy file a field (numpy.save); its first dimension counts the samples.
[data]
kind = "arrays"
[data.train]
words   = "train_words.npy"      # int64 [1600, 6], 0 to 23
numbers = "train_numbers.npy"    # float32 [1600, 9]
class   = "train_class.npy"      # int64 [1600], 0 to 8
[data.val]
words   = "val_words.npy"
numbers = "val_numbers.npy"
class   = "val_class.npy"

# How the model is cut and in which order the ranks work. What a tower makes may pass by stages that do not need it.
[pipeline]
num_stages       = 2             # ranks of the pipeline: vpp run starts as many
split_method     = "PARAMETERS"  # as many parameters in each stage as can be; FLOPS is the default
schedule_type    = "GPIPE"       # all forwards, then all backwards; vpp schedule list has others
num_microbatches = 4             # a batch goes through in four pieces, so that both ranks have work

[optimizer]
kind = "adamw"                   # adamw, adam or sgd
lr   = 5e-3

[train]
steps             = 150
global_batch_size = 32           # samples a step, over all microbatches
eval_every        = 50           # the loss over data.val, every so many steps

# Checkpoints, logs and metrics. The same command goes on from the newest checkpoint.
[run]
dir = {{run_dir}}
)toml";

ScriptedModule model() {
    ScriptedModule words{"WordTower", R"(
def forward(self, words):
    return torch.relu(self.out.forward(torch.mean(self.embedding.forward(words), [1])))
)"};
    words.children = {{"embedding", embedding(kTopics * kWordsOfTopic, 16, 1)}, {"out", linear(16, 32)}};
    ScriptedModule numbers{"NumberTower", R"(
def forward(self, numbers):
    return torch.relu(self.out.forward(numbers))
)"};
    numbers.children = {{"out", linear(kNumbers, 32)}};
    ScriptedModule both{"TwoTowers", R"(
def forward(self, words, numbers):
    left = self.word_tower.forward(words)
    right = self.number_tower.forward(numbers)
    return self.head.forward(torch.relu(self.mix.forward(torch.cat([left, right], 1))))
)"};
    both.children = {{"word_tower", words},
                     {"number_tower", numbers},
                     {"mix", linear(64, 32)},
                     {"head", linear(32, kTopics * kKinds)}};
    return both;
}

struct Samples {
    std::vector<int64_t> words, classes;
    std::vector<float> numbers;
};

/// Three words of four are of the topic, the others any; the numbers of the kind are about 1, the others about 0.
Samples make_samples(int64_t count, uint64_t seed) {
    Samples samples;
    for (int64_t sample = 0; sample < count; ++sample) {
        const uint64_t key = combine_key(mix64(seed), static_cast<uint64_t>(sample));
        const auto below = [](uint64_t bits, int64_t bound) {
            return static_cast<int64_t>(bits % static_cast<uint64_t>(bound));
        };
        const int64_t topic = below(combine_key(key, 0), kTopics), kind = below(combine_key(key, 1), kKinds);
        samples.classes.push_back(topic * kKinds + kind);
        for (int64_t i = 0; i < kWords; ++i) {
            const uint64_t bits = combine_key(key, static_cast<uint64_t>(2 + i));
            const bool is_of_topic = (bits & 3) != 0;
            samples.words.push_back(is_of_topic ? topic * kWordsOfTopic + below(bits >> 2, kWordsOfTopic)
                                                : below(bits >> 2, kTopics * kWordsOfTopic));
        }
        for (int64_t i = 0; i < kNumbers; ++i) {
            const double noise = 0.3 * synthetic_normal(combine_key(key, static_cast<uint64_t>(2 + kWords + i)));
            samples.numbers.push_back(static_cast<float>((i % kKinds == kind ? 1 : 0) + noise));
        }
    }
    return samples;
}

void add_samples(std::vector<ExampleFile>& files, const std::string& part, const Samples& samples) {
    const auto count = static_cast<int64_t>(samples.classes.size());
    files.push_back({part + "_words.npy", array_file({count, kWords}, samples.words)});
    files.push_back({part + "_numbers.npy", array_file({count, kNumbers}, samples.numbers)});
    files.push_back({part + "_class.npy", array_file({count}, samples.classes)});
}

}  // namespace

MadeExample make_two_towers(const ExampleRequest& request) {
    MadeExample made{{plan_file(kTwoTowersPlan, request), {"model.pt", model_file(model(), 1)}}};
    add_samples(made.files, "train", make_samples(kTowersTrainSamples, 1));
    add_samples(made.files, "val", make_samples(kTowersValSamples, 2));
    return made;
}

}  // namespace vpp::detail
