#pragma once
// What one [[data.transform]] table makes of a field, sample by sample, in this order: resize, crop, flip, scale, mean
// and std. The last two dims are the rows and columns of a picture, all before them are planes. Crops and flips are
// keyed where a key is given; without one the crop lies in the middle and nothing is flipped.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/fields.hpp"
#include "data/picture.hpp"
#include "plan/plan.hpp"

namespace vpp::detail {

class FieldTransform {
  public:
    /// `index`: of the table in the plan, for messages. Throws Error{Plan} when it does not fit the field.
    FieldTransform(const Plan& plan, size_t index, const Field& stored);

    /// The field that comes out: float32 where a number changes, else of the stored dtype.
    const Field& field() const { return field_; }
    /// Requires: `stored` and `out` are whole samples of the field before and behind.
    void apply(std::span<const std::byte> stored, std::optional<uint64_t> key, std::span<std::byte> out) const;

  private:
    void take_picture(const Plan& plan, const std::string& where);
    void take_numbers(const Plan& plan, const std::string& where);
    Window window(std::optional<uint64_t> key) const;
    void change_numbers(std::span<float> values) const;

    TransformPlan plan_;
    DType stored_dtype_;
    Field field_;
    PlaneSize stored_size_, resized_size_, size_;  ///< as stored, resized, and as it comes out
    bool has_floats_ = false;                      ///< values become float32
    bool has_window_ = false;                      ///< a crop or a flip
    std::vector<float> mean_, deviation_;          ///< empty, one, or one an entry of the first dim
};

}  // namespace vpp::detail
