"""Tools for five domains: secret messages, plant DNA, trade between planets, travel, and a small web site."""
