// vpp-tokenizer: SentencePiece for `vpp data make --tokenizer`, which starts it with limits and talks to it on standard
// input and output (lib/data/tokenizer.hpp has the messages). A program of its own without LibTorch, whose protobuf is
// another one than SentencePiece's.
#include <sentencepiece_processor.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace {

bool read_all(void* bytes, size_t count) {
    for (size_t done = 0; done < count;) {
        const ssize_t got = ::read(STDIN_FILENO, static_cast<char*>(bytes) + done, count - done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += static_cast<size_t>(got);
    }
    return true;
}

void write_all(const void* bytes, size_t count) {
    for (size_t done = 0; done < count;) {
        const ssize_t wrote = ::write(STDOUT_FILENO, static_cast<const char*>(bytes) + done, count - done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) ::_exit(1);
        done += static_cast<size_t>(wrote);
    }
}

std::optional<std::string> read_message() {
    uint64_t count = 0;
    if (!read_all(&count, sizeof count)) return std::nullopt;
    std::string message(count, '\0');
    if (!read_all(message.data(), count)) return std::nullopt;
    return message;
}

void answer(const std::vector<int>& numbers) {
    const auto count = static_cast<int64_t>(numbers.size());
    write_all(&count, sizeof count);
    write_all(numbers.data(), numbers.size() * sizeof(int));
}

int complain(const std::string& reason) {
    const int64_t count = -static_cast<int64_t>(reason.size());
    write_all(&count, sizeof count);
    write_all(reason.data(), reason.size());
    return 1;
}

/// `is_loaded`: set when the model is, so that what fails after is a document.
int work(bool& is_loaded) {
    const std::optional<std::string> model = read_message();
    if (!model) return 0;
    sentencepiece::SentencePieceProcessor processor;
    if (const auto status = processor.LoadFromSerializedProto(*model); !status.ok()) {
        return complain("SentencePiece cannot read it: " + status.ToString());
    }
    answer({processor.GetPieceSize(), processor.eos_id()});
    is_loaded = true;
    while (const std::optional<std::string> document = read_message()) {
        std::vector<int> tokens;
        if (const auto status = processor.Encode(*document, &tokens); !status.ok()) {
            return complain("SentencePiece cannot encode a document: " + status.ToString());
        }
        answer(tokens);
    }
    return 0;
}

}  // namespace

int main() {
    static_assert(sizeof(int) == sizeof(int32_t));
    bool is_loaded = false;
    try {
        return work(is_loaded);
    } catch (const std::bad_alloc&) {
        return complain(is_loaded ? "SentencePiece needs more memory for a document than it may have"
                                  : "SentencePiece needs far more memory for it than models need");
    } catch (const std::exception& error) {
        return complain(std::string("SentencePiece fails with it: ") + error.what());
    }
}
