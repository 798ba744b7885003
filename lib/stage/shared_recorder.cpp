#include "stage/shared_recorder.hpp"

#include <algorithm>

#include "device/memory_meter.hpp"

namespace vpp {

std::shared_ptr<CardRecorder> SharedRecorder::get() {
    if (std::shared_ptr<CardRecorder> made = recorder_.lock()) return made;
    std::shared_ptr<CardRecorder> made = make_card_recorder(device_);
    recorder_ = made;
    work_bytes_ = 0;
    return made;
}

void SharedRecorder::note_work(int64_t num_bytes) {
    work_bytes_ = std::max(work_bytes_, num_bytes);
}

int64_t SharedRecorder::give_back_memory() {
    given_back_bytes_ = std::max(given_back_bytes_, vpp::give_back_memory(device_));
    return given_back_bytes_;
}

}  // namespace vpp
