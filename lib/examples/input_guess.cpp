#include "examples/input_guess.hpp"

#include "base/error.hpp"

namespace vpp {

namespace {

constexpr int64_t kSamples[] = {2, 4, 1};  // a traced model may take one number of samples only
constexpr int64_t kLengths[] = {16, 8, 32, 64, 128, 4};
constexpr int64_t kSides[] = {32, 28, 224, 64, 8, 16, 128};
constexpr int kMostTrials = 200;

std::vector<int64_t> behind(int64_t first, const std::vector<int64_t>& rest) {
    std::vector<int64_t> shape{first};
    shape.insert(shape.end(), rest.begin(), rest.end());
    return shape;
}

/// Channels, then the same side in each of the kernel's dims.
std::vector<std::vector<int64_t>> image_shapes(const ForwardArgument& argument) {
    std::vector<std::vector<int64_t>> shapes;
    for (const int64_t side : kSides) {
        shapes.push_back(
            behind(argument.weight[1] * argument.groups, std::vector<int64_t>(argument.weight.size() - 2, side)));
    }
    return shapes;
}

/// A single value, or a row of them.
std::vector<std::vector<int64_t>> rows_of_any_length() {
    std::vector<std::vector<int64_t>> shapes;
    for (const int64_t length : kLengths) shapes.push_back({length});
    return shapes;
}

std::vector<std::vector<int64_t>> likely_shapes(const ForwardArgument& argument) {
    switch (argument.use) {
        case InputUse::Linear:
            return {{argument.weight[1]}, {kLengths[0], argument.weight[1]}};
        case InputUse::Convolution:
            return image_shapes(argument);
        case InputUse::Normalized:
            return {argument.weight, behind(kLengths[0], argument.weight)};
        case InputUse::Target:
            if (argument.weight.empty()) return {{}, {8}};
            return {{argument.weight[0]}, {}, {kLengths[0], argument.weight[0]}};
        case InputUse::Indices: {
            auto shapes = rows_of_any_length();
            shapes.push_back({});
            return shapes;
        }
        case InputUse::Classes: {
            auto shapes = rows_of_any_length();
            shapes.insert(shapes.begin(), std::vector<int64_t>{});
            return shapes;
        }
        case InputUse::Unknown:
            break;
    }
    return {{8}, {}, {3, 32, 32}, {1, 28, 28}, {kLengths[0], 8}};
}

std::string reason_of(const ForwardArgument& argument) {
    switch (argument.use) {
        case InputUse::Linear:
            return "a linear layer takes it";
        case InputUse::Convolution:
            return "a convolution takes it";
        case InputUse::Normalized:
            return "a layer norm takes it";
        case InputUse::Indices:
            return "it chooses rows of an embedding";
        case InputUse::Classes:
            return "a loss over classes compares with it";
        case InputUse::Target:
            return "a loss compares with it";
        case InputUse::Unknown:
            break;
    }
    return "nothing in forward tells what it is";
}

/// Goes through all choices, the last argument fastest.
class Trials {
  public:
    Trials(const InputTrial& trial, const std::vector<std::vector<Field>>& choices, InputGuess& guess)
        : trial_(trial), choices_(choices), guess_(guess) {}

    void run() {
        for (const int64_t samples : kSamples) {
            std::vector<size_t> chosen(choices_.size(), 0);
            do {
                if (left_-- == 0 || fits(chosen, samples)) return;
            } while (next(chosen));
        }
    }

  private:
    bool fits(const std::vector<size_t>& chosen, int64_t samples) {
        std::vector<Field> fields;
        for (size_t i = 0; i < chosen.size(); ++i) fields.push_back(choices_[i][chosen[i]]);
        try {
            guess_.forward = trial_.run(fields, samples);
        } catch (const Error& error) {
            if (guess_.problem.empty()) guess_.problem = error.problems().front().message;
            return false;
        }
        for (size_t i = 0; i < fields.size(); ++i) guess_.inputs[i].field = fields[i];
        guess_.samples = samples;
        return true;
    }

    bool next(std::vector<size_t>& chosen) const {
        for (size_t i = chosen.size(); i > 0; --i) {
            if (++chosen[i - 1] < choices_[i - 1].size()) return true;
            chosen[i - 1] = 0;
        }
        return false;
    }

    const InputTrial& trial_;
    const std::vector<std::vector<Field>>& choices_;
    InputGuess& guess_;
    int left_ = kMostTrials;
};

void check_type(const ForwardArgument& argument) {
    if (argument.type == "Tensor" || argument.type == "Optional[Tensor]") return;
    throw Error(ErrorKind::BadData, "forward's argument '" + printable(argument.name) + "' is of type " +
                                        printable(argument.type) +
                                        " and has no default, but data fields are tensors; give it a default");
}

}  // namespace

std::vector<Field> likely_fields(const ForwardArgument& argument) {
    const bool is_index = argument.use == InputUse::Indices || argument.use == InputUse::Classes;
    std::vector<Field> fields;
    for (std::vector<int64_t>& shape : likely_shapes(argument)) {
        Field field{argument.name, is_index ? DType::I64 : DType::F32, std::move(shape)};
        if (argument.use == InputUse::Indices) field.bound = argument.weight[0];
        if (argument.use == InputUse::Classes) field.bound = 2;  // until the scores are known
        fields.push_back(std::move(field));
    }
    return fields;
}

InputGuess guess_inputs(const InputTrial& trial) {
    InputGuess guess;
    std::vector<std::vector<Field>> choices;
    std::vector<InputUse> uses;
    for (const ForwardArgument& argument : trial.arguments()) {
        if (argument.has_default) continue;
        check_type(argument);
        choices.push_back(likely_fields(argument));
        uses.push_back(argument.use);
        guess.inputs.push_back({choices.back().front(), reason_of(argument)});
    }
    if (choices.empty())
        throw Error(ErrorKind::BadData,
                    "forward has no argument that a data field could be; give it one without a default");
    Trials(trial, choices, guess).run();
    for (size_t i = 0; i < uses.size(); ++i) {
        const bool is_class = uses[i] == InputUse::Classes && guess.forward && guess.forward->num_classes;
        if (is_class) guess.inputs[i].field.bound = *guess.forward->num_classes;
    }
    return guess;
}

}  // namespace vpp
