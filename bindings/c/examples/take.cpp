// A generator in a C++ program: closed by its owner, with exceptions for failures.
//
//     c++ -std=c++17 take.cpp -lringflake -o take && ./take

#include <array>
#include <cstdint>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <ringflake.h>

class Ids {
public:
    explicit Ids(const std::string &name)
    {
        ringflake_generator *generator = nullptr;
        check(ringflake_open_local(name.c_str(), &generator));
        generator_.reset(generator);
    }

    std::uint64_t take() const
    {
        std::uint64_t id;
        check(ringflake_take(generator_.get(), &id));
        return id;
    }

    // As many as there are at once: at least one.
    std::vector<std::uint64_t> take(std::size_t count) const
    {
        std::vector<std::uint64_t> ids(count);
        check(ringflake_take_batch(generator_.get(), ids.data(), ids.size(), &count));
        ids.resize(count);
        return ids;
    }

private:
    static void check(ringflake_status status)
    {
        if (status != RINGFLAKE_OK)
            throw std::runtime_error(ringflake_last_error());
    }

    struct Close {
        void operator()(ringflake_generator *generator) const { ringflake_close(generator); }
    };
    std::unique_ptr<ringflake_generator, Close> generator_;
};

static std::string to_text(std::uint64_t id)
{
    std::array<char, RINGFLAKE_TEXT_SIZE> text{};
    ringflake_to_text(id, text.data(), text.size());
    return text.data();
}

int main()
{
    try {
        const Ids ids("orders");
        std::cout << to_text(ids.take()) << '\n';
        for (auto id : ids.take(3))
            std::cout << to_text(id) << '\n';
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
