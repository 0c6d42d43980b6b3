"""The known classes of defects of real proxies, planted into three proxies, and what the suite for proxies says about each."""
