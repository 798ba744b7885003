#include "base/bad_data.hpp"

#include "base/error.hpp"

namespace vpp {

void refuse_data(const std::string& source, const std::string& what) {
    throw Error(ErrorKind::BadData, source + ": " + what);
}

}  // namespace vpp
