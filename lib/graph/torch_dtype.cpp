#include "graph/torch_dtype.hpp"

#include <array>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace vpp {

namespace {
constexpr std::array<std::pair<DType, c10::ScalarType>, 12> kPairs{{
    {DType::F32, c10::ScalarType::Float},
    {DType::F64, c10::ScalarType::Double},
    {DType::F16, c10::ScalarType::Half},
    {DType::BF16, c10::ScalarType::BFloat16},
    {DType::I64, c10::ScalarType::Long},
    {DType::I32, c10::ScalarType::Int},
    {DType::I16, c10::ScalarType::Short},
    {DType::I8, c10::ScalarType::Char},
    {DType::U8, c10::ScalarType::Byte},
    {DType::U16, c10::ScalarType::UInt16},
    {DType::U32, c10::ScalarType::UInt32},
    {DType::Bool, c10::ScalarType::Bool},
}};
}  // namespace

std::optional<DType> carried_dtype(c10::ScalarType type) {
    for (const auto& [dtype, torch_type] : kPairs) {
        if (torch_type == type) return dtype;
    }
    return std::nullopt;
}

std::string dtype_name(c10::ScalarType type) {
    const DType part = from_torch(c10::toRealValueType(type));
    return c10::isComplexType(type) ? complex_name(part) : std::string(name_of(part));
}

DType from_torch(c10::ScalarType type) {
    if (const std::optional<DType> dtype = carried_dtype(type)) return *dtype;
    throw Error(ErrorKind::BadData, std::string("tensors of type ") + c10::toString(type) + " are not supported");
}

c10::ScalarType to_torch(DType dtype) {
    for (const auto& [ours, torch_type] : kPairs) {
        if (ours == dtype) return torch_type;
    }
    check(false, "every DType has a torch type");
    return c10::ScalarType::Undefined;
}

}  // namespace vpp
