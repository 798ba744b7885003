// The example own-model: what is known of a model file, written as a plan that runs at once on random data.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "examples/input_guess.hpp"
#include "examples/makers.hpp"
#include "examples/plan_template.hpp"
#include "graph/torchscript.hpp"
#include "plan/value.hpp"

namespace vpp::detail {

namespace {

constexpr std::string_view kOwnModelPlan =
    R"toml(# A plan for a TorchScript model of your own. Made by: vpp init own-model
# The data is random for now: it shows how the model is cut and what a step costs, but there is nothing to learn.
#
# In the folder of this file:
#   vpp inspect plan.toml
#       shows what would happen: stages, edges, memory, schedule, places to cut
#   vpp run plan.toml
#       trains a few steps on {{ranks}}
#
# What a key means: vpp explain data.kind; what there is: vpp explain. All that is left out has a default.
# Paths of inputs are relative to this file, paths of outputs to the folder that you are in.

[model]
file = {{file}}
# The arguments of forward are fields of the data, by their names; model.inputs names other fields.
{{left_out}}{{loss}}
# Random numbers in the shapes of [data.fields], which are those of a sample, without the dimension of the batch.
# Your own data: write  kind = "arrays"  and in place of samples and [data.fields] a .npy file for each field:
#   [data.train]
{{arrays}}# Other kinds: vpp explain data.kind.
[data]
kind    = "synthetic"
samples = 256                 # of random numbers: so many make an epoch
[data.fields]                 # dtype[shape], and of integers how many values there are
{{fields}}
# How the model is cut and in which order the ranks work.
[pipeline]
num_stages       = {{stages}}          # ranks of the pipeline: vpp run starts as many
schedule_type    = "1F1B"     # vpp schedule list
num_microbatches = 4          # a batch goes through in four pieces, so that all ranks have work

[optimizer]
kind = "adamw"                # adamw, adam or sgd
lr   = 1e-3

[train]
steps             = 20
global_batch_size = {{batch}}         # samples a step: four microbatches of {{samples}}

# Checkpoints, logs and metrics. Remove the folder when the model or the data change.
[run]
dir = {{run_dir}}
)toml";

constexpr const char* kNoLoss = "# forward returns the loss.\n";
constexpr const char* kLossToFillIn = R"toml(
# FILL IN: when forward does not return the loss, the plan adds one.
# [loss]
# kind   = "cross_entropy"      # vpp explain loss.kind
# target = "label"              # a field of the data
)toml";

/// Whether it can be the loss, and whether a loss can compare it.
bool is_scalar(const TriedOutput& output) {
    return output.shape.empty() && is_floating(output.dtype);
}
bool is_trained_scalar(const TriedOutput& output) {
    return is_scalar(output) && output.has_gradient;
}
bool is_scores(const TriedOutput& output, int64_t samples) {
    return output.shape.size() == 2 && output.shape[0] == samples && output.shape[1] > 1;
}

/// How the plan gets its loss.
struct LossGuess {
    std::string text;                    ///< of the plan, behind [model]
    std::optional<LossPlan> added;       ///< the [loss] table
    std::optional<GuessedInput> target;  ///< the field that it compares with
    int output = 0;                      ///< of forward that is the loss
    bool is_known = true;
};

class OwnModelPlan {
  public:
    explicit OwnModelPlan(const ExampleRequest& request) : request_(request) {}

    MadeExample make() {
        guess_fields();
        loss_ = guess_loss();
        const int64_t samples = std::max<int64_t>(guess_.samples, 1);
        const int stages = num_stages(samples);
        MadeExample made;
        made.files.push_back(
            plan_file(kOwnModelPlan, request_,
                      {{"ranks", stages == 1 ? "one rank" : "two ranks"},
                       {"file", toml_quoted(request_.model_path)},
                       {"left_out", left_out()},
                       {"loss", loss_.text},
                       {"arrays", field_lines([](const GuessedInput& input) {
                            return "#   " + key_of(input) + " = " + toml_quoted(input.field.name + ".npy") + "\n";
                        })},
                       {"fields", field_lines([this](const GuessedInput& input) { return field_line(input); })},
                       {"stages", std::to_string(stages)},
                       {"batch", std::to_string(4 * samples)},
                       {"samples", std::to_string(samples)}}));
        made.notes = notes();
        made.first = first(made.files.front().contents);
        return made;
    }

  private:
    /// With the targets that forward may be given; without them where nothing fits so.
    void guess_fields() {
        trial_ = std::make_unique<const InputTrial>(request_.model);
        guess_ = guess_inputs(*trial_);
        if (guess_.forward || !trial_->feeds_optional()) return;
        auto without = std::make_unique<const InputTrial>(request_.model, /*feeds_targets=*/false);
        InputGuess guess = guess_inputs(*without);
        if (!guess.forward) return;
        trial_ = std::move(without);
        guess_ = std::move(guess);
    }

    LossGuess guess_loss() const {
        if (!guess_.forward) return {kLossToFillIn, std::nullopt, std::nullopt, 0, false};
        const auto& outputs = guess_.forward->outputs;
        auto scalar = std::ranges::find_if(outputs, is_trained_scalar);
        if (scalar == outputs.end()) scalar = std::ranges::find_if(outputs, is_scalar);
        if (scalar != outputs.end() && (scalar == outputs.begin() || guess_.forward->all_tensors)) {
            const auto place = static_cast<int>(scalar - outputs.begin());
            const std::string number = std::to_string(place);
            return {place == 0 ? kNoLoss
                               : "loss_output = " + number + "               # what forward returns at place " +
                                     number + " is the loss\n",
                    std::nullopt, std::nullopt, place, true};
        }
        const bool is_comparable = !outputs.empty() && is_floating(outputs[0].dtype) && !outputs[0].shape.empty() &&
                                   outputs[0].shape[0] == guess_.samples;
        if (!is_comparable) return {kLossToFillIn, std::nullopt, std::nullopt, 0, false};
        return added_loss(outputs[0]);
    }

    /// For what forward returns first.
    LossGuess added_loss(const TriedOutput& output) const {
        if (is_scores(output, guess_.samples)) {
            return loss_of_classes(output, 1, "label",
                                   " numbers a sample: guessed to be scores of as many classes. For numbers to be "
                                   "met: \"mse\".\n");
        }
        if (is_scores_of_tokens(output)) {
            return loss_of_classes(output, -1, "targets", " numbers a token: guessed to be scores of the next one.\n");
        }
        if (is_scores_of_pixels(output)) {
            return loss_of_classes(output, 1, "label", " numbers a pixel: guessed to be scores of as many classes.\n");
        }
        const Field target{free_name("target"), output.dtype, {output.shape.begin() + 1, output.shape.end()}};
        return loss_with(target, {.kind = "mse", .target = target.name},
                         "# forward returns numbers: guessed to be compared with numbers of the same shape.\n");
    }

    /// A vector for each whole number of an argument that has a sequence of them.
    bool is_scores_of_tokens(const TriedOutput& output) const {
        return output.shape.size() == 3 && output.shape[2] > 1 &&
               std::ranges::any_of(guess_.inputs, [&](const GuessedInput& input) {
                   return input.field.bound > 0 && input.field.shape == std::vector<int64_t>{output.shape[1]};
               });
    }

    /// As many pixels as an image has that goes in, with another number of channels.
    bool is_scores_of_pixels(const TriedOutput& output) const {
        const std::vector<int64_t> image(output.shape.begin() + 1, output.shape.end());
        return image.size() >= 3 && image[0] > 1 && std::ranges::any_of(guess_.inputs, [&](const GuessedInput& input) {
                   const std::vector<int64_t>& shape = input.field.shape;
                   return shape.size() == image.size() && shape[0] != image[0] &&
                          std::equal(shape.begin() + 1, shape.end(), image.begin() + 1);
               });
    }

    /// `class_dim`: 1 or -1.
    LossGuess loss_of_classes(const TriedOutput& output, int class_dim, const std::string& name,
                              const std::string& meaning) const {
        std::vector<int64_t> shape(output.shape.begin() + 1, output.shape.end());
        const auto along = class_dim == 1 ? shape.begin() : shape.end() - 1;
        const int64_t classes = *along;
        shape.erase(along);
        const Field target{free_name(name), DType::I64, std::move(shape), classes};
        return loss_with(target, {.kind = "cross_entropy", .target = target.name, .class_dim = class_dim},
                         "# forward returns " + std::to_string(classes) + meaning);
    }

    static LossGuess loss_with(const Field& target, const LossPlan& plan, const std::string& why) {
        std::string text = "\n" + why + "[loss]\nkind   = " + toml_quoted(plan.kind) +
                           "  # others: vpp explain loss.kind\ntarget = " + toml_quoted(plan.target) + "\n";
        if (plan.class_dim == -1) text += "class_dim = -1             # the classes lie along the last dimension\n";
        return {text, plan, GuessedInput{target, "compared with what forward returns"}, 0, true};
    }

    /// A field's name that no argument has: one that is left out would be fed.
    std::string free_name(std::string name) const {
        const auto taken = [&] {
            const auto& arguments = trial_->arguments();
            return std::ranges::find(arguments, name, &ForwardArgument::name) != arguments.end();
        };
        while (taken()) name += '_';
        return name;
    }

    /// What random data cannot be; empty where they can be all of it.
    std::string half_problem() const {
        std::vector<GuessedInput> all = guess_.inputs;
        if (loss_.target) all.push_back(*loss_.target);
        const auto half = std::ranges::find_if(all, [](const GuessedInput& input) {
            return input.field.dtype == DType::F16 || input.field.dtype == DType::BF16;
        });
        if (half == all.end()) return "";
        return "as its weights, " + printable(half->field.name) + " is " + std::string(name_of(half->field.dtype)) +
               ", which random data are not; save the model behind .float(), and compute in half precision by "
               "train.precision = \"" +
               (half->field.dtype == DType::F16 ? "fp16" : "bf16") + "\"";
    }

    /// Two where there is a place to cut. What keeps the model from being read is told as a note.
    int num_stages(int64_t samples) {
        if (!guess_.forward || !loss_.is_known) return 1;
        problem_ = half_problem();
        if (!problem_.empty()) return 1;
        TorchScriptOptions options;
        options.loss = loss_.added;
        options.loss_output = loss_.output;
        options.microbatch_size = samples;
        for (const GuessedInput& input : guess_.inputs) options.fields.fields.push_back(input.field);
        if (loss_.target) options.fields.fields.push_back(loss_.target->field);
        try {
            const Graph graph = load_torchscript(request_.model, options).graph;
            check_has_parameters(graph);
            return graph.num_legal_cuts() > 0 ? 2 : 1;
        } catch (const Error& error) {
            problem_ = error.problems().front().message;
            return 1;
        }
    }

    std::string left_out() const {
        std::string text;
        for (const ForwardArgument& argument : trial_->arguments()) {
            if (!argument.has_default) continue;
            text += "# Left out: " + printable(argument.name) + " (" + printable(argument.type) +
                    "), which has a default.\n";
        }
        return text;
    }

    template <typename Line>
    std::string field_lines(const Line& line) const {
        std::string text;
        for (const GuessedInput& input : guess_.inputs) text += line(input);
        if (loss_.target) text += line(*loss_.target);
        return text;
    }

    /// Names of arguments are words, and words are TOML keys; those of other alphabets need quotes.
    static std::string key_of(const GuessedInput& input) {
        const std::string& name = input.field.name;
        const bool plain = std::ranges::all_of(name, [](char c) { return (c & 0x80) == 0; });
        return plain ? name : toml_quoted(name);
    }

    std::string field_line(const GuessedInput& input) const {
        std::string value = std::string(name_of(input.field.dtype)) + shape_text(input.field.shape);
        if (input.field.bound > 0) value += " < " + std::to_string(input.field.bound);
        const char* sign = guess_.forward ? "  # guessed: " : "  # FILL IN: ";
        return key_of(input) + " = " + toml_quoted(value) + sign + input.reason + "\n";
    }

    std::vector<std::string> notes() const {
        std::vector<std::string> notes;
        if (!guess_.forward) {
            notes.push_back("none of the shapes that were tried fit this model (the first: " + guess_.problem + ")");
        } else {
            for (const GuessedInput& input : guess_.inputs) {
                notes.push_back("guessed " + printable(input.field.name) + " = " +
                                std::string(name_of(input.field.dtype)) + shape_text(input.field.shape) + ": " +
                                input.reason);
            }
        }
        if (loss_.added) {
            const Field& target = loss_.target->field;
            notes.push_back("guessed the loss " + loss_.added->kind + " with " + target.name + " = " +
                            std::string(name_of(target.dtype)) + shape_text(target.shape) +
                            ": by the shape of what forward returns");
        }
        if (guess_.forward && !guess_.forward->problem.empty()) {
            notes.push_back("with random data and weights of 0.02 it fails: " + guess_.forward->problem);
        }
        if (guess_.forward && !loss_.is_known) notes.push_back("forward returns nothing that a loss could be made of");
        if (!problem_.empty()) notes.push_back("the model cannot be used as it is: " + problem_);
        return notes;
    }

    std::string first(const std::string& plan) const {
        if (!problem_.empty()) return "mend the model, then remove this folder and make it anew";
        const std::string lines = lines_to_fill_in(plan);
        return lines.empty() ? "" : "fill in plan.toml at line " + lines + "; it cannot run before";
    }

    /// "12, 20"
    static std::string lines_to_fill_in(const std::string& plan) {
        std::string lines;
        int number = 1;
        for (size_t begin = 0; begin < plan.size(); ++number) {
            const size_t end = std::min(plan.find('\n', begin), plan.size());
            const bool is_open = plan.substr(begin, end - begin).find("# FILL IN") != std::string::npos;
            if (is_open) lines += (lines.empty() ? "" : ", ") + std::to_string(number);
            begin = end + 1;
        }
        return lines;
    }

    const ExampleRequest& request_;
    std::unique_ptr<const InputTrial> trial_;
    InputGuess guess_;
    LossGuess loss_;
    std::string problem_;
};

}  // namespace

MadeExample make_own_model(const ExampleRequest& request) {
    check(request.model != nullptr, "own-model is made for a model file");
    return OwnModelPlan(request).make();
}

}  // namespace vpp::detail
