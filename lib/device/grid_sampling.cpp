#include "device/grid_sampling.hpp"

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <vector>

namespace vpp {

namespace {

/// Along one dimension: where in the input each element of the output lies, and how fast that moves with the grid.
struct Places {
    at::Tensor place, slope;
};

/// Mirrors what lies outside of [low, low + span], as often as it takes.
void reflect(Places& at, double low, double span) {
    if (span == 0) {
        at = {at::zeros_like(at.place), at::zeros_like(at.slope)};
        return;
    }
    const at::Tensor distance = at.place - low;
    const at::Tensor turns = (distance.abs() / span).floor();
    const at::Tensor rest = distance.abs().fmod(span);
    const at::Tensor is_turned = turns.fmod(2).eq(1);
    at.place = at::where(is_turned, span - rest, rest) + low;
    at.slope = at::where(is_turned.logical_xor(distance.lt(0)), -at.slope, at.slope);
}

/// `coordinate`: -1 to 1 is all of the input.
Places places_of(const at::Tensor& coordinate, int64_t size, GridPadding padding, bool align_corners) {
    const auto extent = static_cast<double>(size), last = extent - 1;
    Places at;
    at.place = align_corners ? (coordinate + 1) / 2 * last : ((coordinate + 1) * extent - 1) / 2;
    at.slope = at::full_like(coordinate, (align_corners ? last : extent) / 2);
    if (padding == GridPadding::Reflection) reflect(at, align_corners ? 0 : -0.5, align_corners ? last : extent);
    if (padding != GridPadding::Zeros) {
        at.slope = at.slope.masked_fill(at.place.le(0).logical_or(at.place.ge(last)), 0);
        at.place = at.place.clamp(0, last);
    }
    constexpr double kOutside = -100, kLargest = 1 << 30;  // of an index; NaN is outside too
    at.place = at::where(at.place.abs().le(kLargest), at.place, kOutside);
    return at;
}

/// What of the input some elements of the output were read from, with a weight each: [n, out].
struct Reading {
    at::Tensor index, weight;
};

/// One corner of the cells in which the elements of the output lie, or the nearest elements.
class Corner {
  public:
    explicit Corner(const at::Tensor& like)
        : index_(at::zeros_like(like, like.options().dtype(at::kLong))), inside_(index_.eq(0)) {}

    /// Goes on with a further dimension of the input.
    void add(const at::Tensor& place, int64_t size) {
        const at::Tensor element = place.to(at::kLong);
        inside_ = inside_.logical_and(element.ge(0)).logical_and(element.lt(size));
        index_ = index_ * size + element.clamp(0, size - 1);
    }

    const at::Tensor& index() const { return index_; }
    at::Tensor inside(const at::Tensor& values) const { return values.masked_fill(inside_.logical_not(), 0); }

  private:
    at::Tensor index_, inside_;
};

/// For the duration of one call: everything with its dimensions of the output as one.
class Sampling {
  public:
    Sampling(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& grid, at::ScalarType dtype)
        : gradient_(gradient.to(dtype).flatten(2)),
          input_(input.to(dtype).flatten(2)),
          grid_(grid.to(dtype).flatten(1, -2)),
          sizes_(input.sizes().slice(2)) {}

    void place(GridPadding padding, bool align_corners) {
        const auto num_dims = static_cast<int64_t>(sizes_.size());
        for (int64_t d = 0; d < num_dims; ++d) {  // a grid begins with the last dimension
            places_.push_back(
                places_of(grid_.select(-1, num_dims - 1 - d), sizes_[static_cast<size_t>(d)], padding, align_corners));
        }
        by_place_.assign(sizes_.size(), at::zeros_like(places_[0].place));
    }

    void read_nearest() {
        Corner corner(places_[0].place);
        for (size_t d = 0; d < sizes_.size(); ++d) corner.add(places_[d].place.round(), sizes_[d]);
        readings_.push_back({corner.index(), corner.inside(at::ones_like(places_[0].place))});
    }

    void read_linear(bool with_grid) {
        std::vector<Cells> cells;
        for (const Places& at : places_) {
            const at::Tensor begin = at.place.floor();
            cells.push_back({begin, at.place - begin});
        }
        for (size_t which = 0; which < size_t{1} << sizes_.size(); ++which) read_corner(which, cells, with_grid);
    }

    at::Tensor of_input(at::IntArrayRef sizes) const {
        std::vector<at::Tensor> indices, parts;
        for (const Reading& reading : readings_) {
            indices.push_back(reading.index);
            parts.push_back(gradient_ * reading.weight.unsqueeze(1));
        }
        const at::Tensor all = at::cat(parts, 2);
        at::Tensor sums = at::zeros_like(input_, at::MemoryFormat::Contiguous);
        sums.scatter_add_(2, at::cat(indices, 1).unsqueeze(1).expand_as(all), all);
        return sums.view(sizes);
    }

    at::Tensor of_grid(at::IntArrayRef sizes) const {
        std::vector<at::Tensor> parts;
        for (size_t d = sizes_.size(); d-- > 0;) parts.push_back(by_place_[d] * places_[d].slope);
        return at::stack(parts, -1).view(sizes);
    }

  private:
    /// Along one dimension: where the cells begin in which the elements of the output lie, and how far behind it they
    /// are.
    struct Cells {
        at::Tensor begin, rest;
    };

    void read_corner(size_t which, const std::vector<Cells>& cells, bool with_grid) {
        Corner corner(places_[0].place);
        std::vector<at::Tensor> shares;  // in each dimension
        for (size_t d = 0; d < sizes_.size(); ++d) {
            const auto& [begin, rest] = cells[d];
            const bool is_far = (which >> d & 1) != 0;
            corner.add(is_far ? begin + 1 : begin, sizes_[d]);
            shares.push_back(is_far ? rest : 1 - rest);
        }
        readings_.push_back({corner.index(), corner.inside(product(shares, sizes_.size()))});
        if (!with_grid) return;
        const at::Tensor read = input_.gather(2, corner.index().unsqueeze(1).expand_as(gradient_));
        const at::Tensor by_weight = corner.inside((read * gradient_).sum(1));
        for (size_t d = 0; d < sizes_.size(); ++d) {
            const at::Tensor moved = by_weight * product(shares, d);
            by_place_[d] = (which >> d & 1) != 0 ? by_place_[d] + moved : by_place_[d] - moved;
        }
    }

    /// Of all but one.
    static at::Tensor product(const std::vector<at::Tensor>& shares, size_t left_out) {
        at::Tensor result;
        for (size_t d = 0; d < shares.size(); ++d) {
            if (d != left_out) result = result.defined() ? result * shares[d] : shares[d];
        }
        return result;
    }

    at::Tensor gradient_, input_, grid_;
    at::IntArrayRef sizes_;  ///< of the input's dimensions
    std::vector<Places> places_;
    std::vector<Reading> readings_;
    std::vector<at::Tensor> by_place_;  ///< the gradient of each dimension's places
};

}  // namespace

std::tuple<at::Tensor, at::Tensor> grid_sampler_backward(const at::Tensor& gradient, const at::Tensor& input,
                                                         const at::Tensor& grid, GridInterpolation interpolation,
                                                         GridPadding padding, bool align_corners,
                                                         std::array<bool, 2> wanted) {
    Sampling sampling(gradient, input, grid, at::toOpMathType(input.scalar_type()));
    sampling.place(padding, align_corners);
    if (interpolation == GridInterpolation::Nearest) {
        sampling.read_nearest();
    } else {
        sampling.read_linear(wanted[1]);
    }
    std::tuple<at::Tensor, at::Tensor> result;
    if (wanted[0]) std::get<0>(result) = sampling.of_input(input.sizes()).to(input.scalar_type());
    if (wanted[1]) std::get<1>(result) = sampling.of_grid(grid.sizes()).to(grid.scalar_type());
    return result;
}

}  // namespace vpp
