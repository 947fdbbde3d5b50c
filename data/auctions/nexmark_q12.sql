-- How many bids each bidder makes in each ten seconds, by the clock and not by the time that the bids bear.
-- NEXMark, Query 12, as nexmark/nexmark puts it for Flink, whose PROCTIME() is the time recorded with the slice here: it
-- is in the commit, so that a run that goes on after a crash has no other answer.
-- Ten seconds are over with the first slice after them, and for a bidder who bids no more (bid.bidder) at once.
-- Verdict, followed: answers when groups close, keeps what is open.

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

SELECT bidder, COUNT(*) AS bid_count, window.start AS starttime, window.end AS endtime
FROM (SELECT *, current_timestamp() AS p_time FROM bid)
GROUP BY bidder, window(p_time, '10 seconds');
