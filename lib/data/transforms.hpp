#pragma once
// The [[data.transform]] tables of a plan over a data set of any kind.
#include <memory>

#include "data/dataset.hpp"

namespace vpp::detail {

/// The same data set, with the fields that the tables name in another form. What is random in it is a function of
/// (train.seed, epoch, sample) alone, and the same for all fields of a sample; reads without an epoch have none of it.
/// Throws Error{Plan} for a table that does not fit its field.
std::unique_ptr<Dataset> with_transforms(std::unique_ptr<Dataset> dataset, const Plan& plan);

}  // namespace vpp::detail
