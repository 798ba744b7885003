#include "examples/input_guess.hpp"

#include <algorithm>
#include <numeric>

#include "base/elapsed.hpp"
#include "base/error.hpp"

namespace vpp {

namespace {

constexpr int64_t kSamples[] = {2, 4, 1};  // a traced model may take one number of samples only
constexpr int64_t kMostSideOfVolume = 64;
constexpr int64_t kSoundLengths[] = {1024, 4096, 16384};
constexpr int kMostTrials = 200;

using Shape = std::vector<int64_t>;

Shape behind(int64_t first, const Shape& rest) {
    Shape shape{first};
    shape.insert(shape.end(), rest.begin(), rest.end());
    return shape;
}

/// Channels, then the same side in each of the kernel's dims.
std::vector<Shape> image_shapes(const ForwardArgument& argument, const LikelySizes& sizes) {
    const size_t num_dims = argument.weight.size() - 2;
    std::vector<Shape> shapes;
    for (const int64_t side : sizes.sides) {
        if (num_dims >= 3 && side > kMostSideOfVolume) continue;
        shapes.push_back(behind(argument.weight[1] * argument.groups, Shape(num_dims, side)));
    }
    return shapes;
}

/// They are long. Those of one channel may come without it.
std::vector<Shape> sound_shapes(const ForwardArgument& argument, const LikelySizes& sizes) {
    const int64_t channels = argument.weight[1] * argument.groups;
    std::vector<Shape> shapes = image_shapes(argument, sizes);
    for (const int64_t length : kSoundLengths) shapes.push_back({channels, length});
    if (channels > 1) return shapes;
    for (const int64_t length : kSoundLengths) shapes.push_back({length});
    for (const int64_t length : sizes.sides) shapes.push_back({length});
    return shapes;
}

/// Height and width, of volumes also the depth; empty without an image.
Shape sides_of_image(const std::vector<ChosenInput>& others) {
    for (const ChosenInput& other : others) {
        const Shape& shape = other.field.shape;
        if (other.use == InputUse::Convolution && shape.size() >= 3) return {shape.begin() + 1, shape.end()};
    }
    return {};
}

/// Empty without tokens.
Shape shape_of_tokens(const std::vector<ChosenInput>& others) {
    for (const ChosenInput& other : others) {
        if (other.use == InputUse::Indices) return other.field.shape;
    }
    return {};
}

/// Of tokens, or of rows; 1 without a sequence.
int64_t length_of_sequence(const std::vector<ChosenInput>& others) {
    for (const ChosenInput& other : others) {
        const size_t num_dims = other.use == InputUse::Indices ? 1 : 2;
        if (other.field.shape.size() == num_dims) return other.field.shape[0];
    }
    return 1;
}

/// A row of values.
std::vector<Shape> rows_of_any_length(const LikelySizes& sizes) {
    std::vector<Shape> shapes;
    for (const int64_t length : sizes.lengths) shapes.push_back({length});
    return shapes;
}

/// One class, one for each pixel, or a row of them. Behind a convolution each pixel has scores.
std::vector<Shape> shapes_of_classes(const ForwardArgument& argument, const std::vector<ChosenInput>& others,
                                     const LikelySizes& sizes) {
    const Shape sides = sides_of_image(others), tokens = shape_of_tokens(others);
    auto shapes = sides.empty() || tokens.empty() ? rows_of_any_length(sizes) : std::vector<Shape>{tokens};
    shapes.insert(shapes.begin(), Shape{});
    if (!sides.empty()) shapes.insert(shapes.begin() + (argument.weight.size() > 3 ? 0 : 1), sides);
    return shapes;
}

std::vector<Shape> shapes_of_target(const ForwardArgument& argument, const Shape& sides, const LikelySizes& sizes) {
    if (argument.weight.empty()) return {{}, {8}};
    const int64_t width = argument.weight[0];
    std::vector<Shape> shapes{{width}, {}, {sizes.lengths[0], width}};
    if (!sides.empty() && argument.weight.size() > 3) shapes.insert(shapes.begin(), behind(width, sides));
    return shapes;
}

/// One for each token, pixel or value of an input before.
std::vector<Shape> shapes_of_mask(const std::vector<ChosenInput>& others) {
    std::vector<Shape> shapes;
    for (const ChosenInput& other : others) {
        Shape shape = other.field.shape;
        shapes.push_back(shape);
        if (other.use == InputUse::Convolution && shape.size() > 1) shapes.push_back({shape.begin() + 1, shape.end()});
        if (other.use == InputUse::Linear && shape.size() > 1) shapes.push_back({shape.begin(), shape.end() - 1});
    }
    shapes.push_back({});
    return shapes;
}

std::vector<Shape> likely_shapes(const ForwardArgument& argument, const std::vector<ChosenInput>& others,
                                 const LikelySizes& sizes) {
    const int64_t length = sizes.lengths[0];
    switch (argument.use) {
        case InputUse::Linear:
            return {{argument.weight[1]}, {length, argument.weight[1]}};
        case InputUse::Convolution:
            return argument.weight.size() == 3 ? sound_shapes(argument, sizes) : image_shapes(argument, sizes);
        case InputUse::Normalized:
            return {argument.weight, behind(length, argument.weight)};
        case InputUse::Target:
            return shapes_of_target(argument, sides_of_image(others), sizes);
        case InputUse::Indices: {
            auto shapes = rows_of_any_length(sizes);
            shapes.push_back({});
            return shapes;
        }
        case InputUse::Lengths:
            return {{}};
        case InputUse::Mask:
            return shapes_of_mask(others);
        case InputUse::Classes:
            return shapes_of_classes(argument, others, sizes);
        case InputUse::Unknown:
            break;
    }
    return {{8}, {}, {3, 32, 32}, {1, 28, 28}, {length, 8}};
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
        case InputUse::Lengths:
            return "lengths of sequences, of which none may be 0";
        case InputUse::Mask:
            return "it says which elements are taken";
        case InputUse::Classes:
            return "a loss over classes compares with it";
        case InputUse::Target:
            return "a loss compares with it";
        case InputUse::Unknown:
            break;
    }
    return "nothing in forward tells what it is";
}

/// Whether what an argument may be follows from those that come before.
int place_in_order(InputUse use) {
    switch (use) {
        case InputUse::Unknown:
        case InputUse::Lengths:
        case InputUse::Mask:
            return 1;
        case InputUse::Classes:
        case InputUse::Target:
            return 2;
        default:
            return 0;
    }
}

/// Goes through all choices, the last argument fastest; those that follow from others come last.
class Trials {
  public:
    Trials(const InputTrial& trial, const std::vector<ForwardArgument>& arguments, std::chrono::seconds patience,
           InputGuess& guess)
        : trial_(trial), arguments_(arguments), patience_(patience), guess_(guess), order_(arguments.size()) {
        std::iota(order_.begin(), order_.end(), size_t{0});
        std::ranges::stable_sort(order_, {}, [&](size_t i) { return place_in_order(arguments_[i].use); });
    }

    void run() {
        if (try_all() || guess_.forward || hints_.empty()) return;
        sizes_ = hints_.sizes();
        try_all();
    }

  private:
    /// True when nothing else is to be tried.
    bool try_all() {
        return std::ranges::any_of(kSamples, [&](int64_t samples) { return ends_with(samples); });
    }

    /// Tries all for what is not chosen yet. True as above.
    bool ends_with(int64_t samples) {
        if (chosen_.size() == order_.size()) return is_over() || fits(samples);
        const ForwardArgument& argument = arguments_[order_[chosen_.size()]];
        for (const Field& field : likely_fields(argument, chosen_, sizes_)) {
            chosen_.push_back({argument.use, field});
            const bool ends = ends_with(samples);
            chosen_.pop_back();
            if (ends) return true;
        }
        return false;
    }

    bool is_over() {
        const bool is_late = num_tried_ > 0 && Clock::now() - began_ >= patience_;
        if (is_late && !guess_.forward)
            guess_.problem += "; gave up after " + std::to_string(patience_.count()) + " s of trying";
        return is_late || num_tried_++ == kMostTrials;
    }

    /// The first are taken where nothing fits; what fails on numbers, or returns samples along a second dimension, only
    /// where nothing else does.
    bool fits(int64_t samples) {
        std::vector<Field> fields(order_.size());
        for (size_t i = 0; i < order_.size(); ++i) fields[order_[i]] = chosen_[i].field;
        if (num_tried_ == 1) take(fields);
        TriedForward tried;
        try {
            tried = trial_.run(fields, samples);
        } catch (const Error& error) {
            const std::string& problem = error.problems().front().message;
            if (guess_.problem.empty()) guess_.problem = problem;
            hints_.learn(problem, fields);
            return false;
        }
        const bool runs = tried.problem.empty() && !has_samples_elsewhere(fields, samples, tried);
        if (guess_.forward && !runs) return false;
        guess_.forward = std::move(tried);
        take(fields);
        guess_.samples = samples;
        return runs;
    }

    /// Whether twice as many samples make another dimension than the first twice as long: "x * w.unsqueeze(1)" does
    /// with a row of w. A model that runs with one number of samples only is taken as it is.
    bool has_samples_elsewhere(const std::vector<Field>& fields, int64_t samples, const TriedForward& tried) const {
        std::vector<TriedOutput> outputs;
        try {
            outputs = trial_.run(fields, 2 * samples).outputs;
        } catch (const Error&) {
            return false;
        }
        if (outputs.size() != tried.outputs.size()) return false;
        for (size_t i = 0; i < outputs.size(); ++i) {
            const Shape &before = tried.outputs[i].shape, &now = outputs[i].shape;
            if (now.size() != before.size()) continue;
            for (size_t dim = 1; dim < now.size(); ++dim) {
                if (before[dim] > 0 && now[dim] == 2 * before[dim]) return true;
            }
        }
        return false;
    }

    void take(const std::vector<Field>& fields) {
        for (size_t i = 0; i < fields.size(); ++i) guess_.inputs[i].field = fields[i];
    }

    const InputTrial& trial_;
    const std::vector<ForwardArgument>& arguments_;
    const std::chrono::seconds patience_;
    InputGuess& guess_;
    std::vector<size_t> order_;
    std::vector<ChosenInput> chosen_;  ///< of the first in that order
    LikelySizes sizes_;
    SizeHints hints_;
    const Clock::time_point began_ = Clock::now();
    int num_tried_ = 0;
};

}  // namespace

std::vector<Field> likely_fields(const ForwardArgument& argument, const std::vector<ChosenInput>& others,
                                 const LikelySizes& sizes) {
    std::vector<Field> fields;
    const Shape tokens = shape_of_tokens(others);
    if (argument.use == InputUse::Unknown && !tokens.empty()) {
        fields.push_back({argument.name, DType::I64, tokens, 2});
        fields.push_back({argument.name, argument.numbers, tokens});
    }
    for (Shape& shape : likely_shapes(argument, others, sizes)) {
        Field& field = fields.emplace_back(argument.name, argument.numbers, std::move(shape));
        if (argument.use == InputUse::Indices) field.bound = argument.weight[0];
        if (argument.use == InputUse::Lengths) field.bound = length_of_sequence(others);
        if (argument.use == InputUse::Classes) field.bound = 2;  // until the scores are known
        if (field.bound > 0) field.dtype = DType::I64;
        if (argument.use == InputUse::Mask) field.dtype = DType::Bool;
    }
    if (argument.use == InputUse::Mask) {  // a model may take ones and zeros for it
        const std::vector<Field> as_bool = fields;
        for (const Field& field : as_bool) fields.push_back({field.name, DType::I64, field.shape, 2});
    }
    return fields;
}

InputGuess guess_inputs(const InputTrial& trial, std::chrono::seconds patience) {
    InputGuess guess;
    std::vector<ForwardArgument> arguments;
    for (const ForwardArgument& argument : trial.arguments()) {
        if (argument.has_default) continue;
        arguments.push_back(argument);
        guess.inputs.push_back({{argument.name, argument.numbers, {}}, reason_of(argument)});
    }
    if (arguments.empty())
        throw Error(ErrorKind::BadData,
                    "forward has no argument that a data field could be; give it one without a default");
    Trials(trial, arguments, patience, guess).run();
    for (size_t i = 0; i < arguments.size(); ++i) {
        const bool is_class = arguments[i].use == InputUse::Classes && guess.forward && guess.forward->num_classes;
        if (is_class) guess.inputs[i].field.bound = *guess.forward->num_classes;
    }
    return guess;
}

}  // namespace vpp
