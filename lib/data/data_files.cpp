#include "data/data_files.hpp"

#include "data/array_names.hpp"
#include "data/token_file.hpp"

namespace vpp {

std::vector<std::string> data_files(const DataPlan& data) {
    std::vector<std::string> paths;
    for (const auto* files : {&data.train, &data.val}) {
        for (const std::string& file : *files) {
            paths.push_back(file);
            if (const auto index = detail::index_beside(file)) paths.push_back(index->string());
        }
    }
    for (const NamedTexts* fields : {&data.train_fields, &data.val_fields}) {
        for (const auto& [field, file] : *fields) paths.push_back(detail::read_array_name(file, field).file);
    }
    return paths;
}

}  // namespace vpp
